import { Observable } from "../observable";
import { Failure, isAbort, readFailure } from "./failure";
import { askForKey, currentKey } from "./key";

/** False while the service does not answer. */
export const reachable = new Observable(true);
/** Counts up each time the service answers again. */
export const recoveries = new Observable(0);

export interface Options {
  method?: "GET" | "POST" | "DELETE";
  accept?: string;
  headers?: Record<string, string>;
  body?: BodyInit;
  signal?: AbortSignal;
}

/** Paths are relative to the page, so that they stay below whatever prefix it is served under. */
async function send(path: string, options: Options): Promise<Response> {
  const headers: Record<string, string> = { accept: options.accept ?? "application/json", ...options.headers };
  const key = currentKey();
  if (key !== null) headers.authorization = `Bearer ${key}`;
  return fetch(path, { method: options.method ?? "GET", headers, body: options.body, signal: options.signal, credentials: "same-origin", cache: "no-store" });
}

/** An answer of success; everything else is thrown as a `Failure`. On 401 a key is asked for, and the request is sent again. */
export async function request(path: string, options: Options = {}): Promise<Response> {
  for (;;) {
    const key = currentKey();
    let response: Response;
    try {
      response = await send(path, options);
    } catch (error) {
      if (isAbort(error)) throw error;
      watch();
      throw noAnswer();
    }
    if (response.ok) return response;
    const failure = await readFailure(response);
    if (!(await mayRepeat(failure, key))) throw failure;
  }
}

/** True where there is another key than `key` after a refusal. Also sees to it that the page notices a service that is gone. */
export async function mayRepeat(failure: Failure, key: string | null): Promise<boolean> {
  if (failure.problem === null && (failure.status === 0 || failure.status >= 502)) watch();
  if (failure.status !== 401) return false;
  // Another request may have got a key while this one was under way.
  return currentKey() !== key || askForKey(key === null ? "" : failure.message);
}

export function noAnswer(): Failure {
  return new Failure("The service does not answer.", null, 0);
}

let watching = false;

async function watch(): Promise<void> {
  reachable.value = false;
  if (watching) return;
  watching = true;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const alive = await fetch("livez", { cache: "no-store" }).then((response) => response.ok, () => false);
    if (alive) break;
  }
  watching = false;
  reachable.value = true;
  recoveries.value++;
}

export async function json<T>(path: string, options: Options = {}): Promise<T> {
  const response = await request(path, options);
  return (await response.json()) as T;
}

export function post<T>(path: string, body: unknown, options: Options = {}): Promise<T> {
  return json<T>(path, { ...options, method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...options.headers } });
}

export function query(parameters: Record<string, string | number | boolean | null | undefined>): string {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}
