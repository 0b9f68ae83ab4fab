/** What coverage.test.ts counts. */
export async function retryOnConflict<T>(attempt: () => Promise<T>, times: number): Promise<T | undefined> {
  for (let left = times; left > 0; left--) {
    try {
      return await attempt();
    } catch {}
  }
  return undefined;
}

export async function save(failures: number): Promise<string | undefined> {
  let left = failures;
  const attempt = async (): Promise<string> => {
    if (left-- > 0) throw new Error("a conflict");
    return "saved";
  };
  return await retryOnConflict(attempt, 3).catch(() => "not saved");
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}

/** Its inner function is compiled only once it runs. */
export function readTwice(texts: readonly string[]): unknown {
  const first = (text = ""): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  };
  return texts.length > 0 ? first(texts[0]) : undefined;
}
