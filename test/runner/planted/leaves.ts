import { it } from "node:test";

it("changes what others share", () => {
  process.env["PLANTED"] ??= "left";
  setInterval(() => {}, 60_000);
});
