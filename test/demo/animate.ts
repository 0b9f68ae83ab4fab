#!/usr/bin/env node
/**
 * Draws the README's picture of a run: `node test/demo/start.ts --once | node test/demo/animate.ts >
 * docs/rollout.svg`
 */
import { text } from "node:stream/consumers";
import { drawAnimation } from "./animation.ts";

process.stdout.write(drawAnimation(await text(process.stdin)));
