#!/usr/bin/env node
/**
 * `node test/fence/house.ts [root]`: the size of the house, by the product's own imports, types included. A room is a
 * folder two levels deep (`reconciler/budget`, its `act/` included); an arrow leads from a room to one that it imports;
 * a floor is as high as the longest way down.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const root = process.argv[2] ?? join(import.meta.dirname, "../..");
const files = globSync("{reconciler,functions,cli,infra}/**/*.ts", { cwd: root }).filter(
  (path) => !path.includes("node_modules"),
);
const roomOf = (path: string): string => path.split("/").slice(0, -1).slice(0, 2).join("/");

const arrows = new Map<string, Set<string>>(files.map((path) => [roomOf(path), new Set<string>()]));
let lines = 0;
for (const path of files) {
  const text = readFileSync(join(root, path), "utf8");
  lines += text.split("\n").length - 1;
  for (const [, source = ""] of text.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)) {
    const [from, to] = [roomOf(path), roomOf(normalize(join(dirname(path), source)))];
    if (from !== to) arrows.get(from)?.add(to);
  }
}

/** The longest way down from a room, over these rooms; a circle counts once. */
function floorOf(room: string, rooms: readonly string[], way: readonly string[] = []): number {
  const below = [...(arrows.get(room) ?? [])].filter((next) => rooms.includes(next) && !way.includes(next));
  return 1 + Math.max(0, ...below.map((next) => floorOf(next, rooms, [...way, room])));
}

console.log(`${lines} lines`);
for (const part of ["reconciler", ""]) {
  const rooms = [...arrows.keys()].filter((room) => room.startsWith(part));
  const count = rooms.reduce((sum, room) => sum + rooms.filter((other) => arrows.get(room)?.has(other)).length, 0);
  const floors = Math.max(...rooms.map((room) => floorOf(room, rooms)));
  const inside = files.filter((path) => rooms.includes(roomOf(path)));
  console.log(
    `${part || "in all"}: ${inside.length} files, ${rooms.length} rooms on ${floors} floors, ${count} arrows`,
  );
}
