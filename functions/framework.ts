#!/usr/bin/env node
/**
 * Entry of a function on Knative: functions-framework, which starts as it is loaded, with the target that
 * `FUNCTION_SOURCE` and `FUNCTION_TARGET` name.
 */
export { main } from "../node_modules/@google-cloud/functions-framework/build/src/main.js";
