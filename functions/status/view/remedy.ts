/** A remedy on the status page: its sentences, and each of its commands in a box with a button that copies it. Pure. */
import { h, type ComponentChild } from "preact";
import { isCommand } from "../../../reconciler/model/remedy.ts";

export const showRemedy = (remedy: string): ComponentChild =>
  h(
    "div",
    { class: "fix" },
    h("strong", {}, "Fix"),
    ...remedy.split("\n").map((line) => (isCommand(line) ? showCommand(line) : h("p", {}, line))),
  );

/** The word on the button is in the style: the text of the page is what a person may copy. */
const showCommand = (command: string): ComponentChild =>
  h(
    "div",
    { class: "command" },
    h("code", {}, command),
    h("button", { type: "button", class: "copy", "aria-label": "Copy the command" }),
  );
