/** Compares the version of this command with those of the installed images. Pure. */

export interface InstalledPart {
  /** `cronjob default/zonewise-reconciler` */
  readonly name: string;
  readonly image: string;
}

interface Installed extends InstalledPart {
  /** By the tag of its image; absent if the tag names no version. */
  readonly version?: string;
  /** Absent if its version is not known. */
  readonly matches?: boolean;
  readonly note: string;
}

/** `host:5000/zonewise:v1.2.3@sha256:…` */
const VERSION_TAG = /:v?(\d+\.\d+\.\d+(?:[-+][\w.+-]+)?)(?:@sha256:\w+)?$/;

export const compareVersions = (own: string, parts: readonly InstalledPart[]): Installed[] =>
  parts.map((part) => {
    const [, version] = VERSION_TAG.exec(part.image) ?? [];
    if (version === undefined) return { ...part, note: `the tag of image ${part.image} names no version` };
    const matches = version === own;
    return {
      ...part,
      version,
      matches,
      note: matches ? "" : `this command is ${own}: use the installed version of it`,
    };
  });
