import { Observable } from "../observable";

/** Lives as long as the page, and is stored nowhere. */
let key: string | null = null;

/** The reason why a key is asked for; null while none is. */
export const keyRequest = new Observable<string | null>(null);
export const hasKey = new Observable(false);

let waiting: ((entered: boolean) => void)[] = [];

export function currentKey(): string | null {
  return key;
}

/** Asks for a key, once for all requests that wait. Resolves to false where none was entered. */
export function askForKey(reason: string): Promise<boolean> {
  keyRequest.value = reason;
  return new Promise((resolve) => waiting.push(resolve));
}

export function answerKeyRequest(entered: string | null): void {
  if (entered !== null) {
    key = entered === "" ? null : entered;
    hasKey.value = key !== null;
  }
  keyRequest.value = null;
  const resolved = waiting;
  waiting = [];
  for (const resolve of resolved) resolve(entered !== null);
}
