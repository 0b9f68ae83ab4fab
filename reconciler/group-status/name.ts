/** The name of a group's RolloutGroup (§11.1). */
import { hash } from "../model/hash.ts";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * The group's own name where an object may have it; a label value may also have capitals and underscores, or be empty.
 */
export function nameOfGroup(group: string): string {
  if (SUBDOMAIN.test(group)) return group;
  const readable = group.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return `group-${readable}-${hash(group).toString(16).padStart(8, "0")}`.replaceAll(/-+/g, "-");
}
