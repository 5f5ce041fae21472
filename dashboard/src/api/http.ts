import { Observable } from "../observable";
import { Failure, isAbort, readFailure } from "./failure";
import { askForKey, currentKey, renewals } from "./key";

/** False while the service does not answer. */
export const reachable = new Observable(true);

export interface Options {
  method?: "GET" | "POST" | "DELETE";
  accept?: string;
  headers?: Record<string, string>;
  body?: BodyInit;
  signal?: AbortSignal;
  /** True for a request whose failure says nothing of the service, as a proxy may have no event streams. */
  optional?: boolean;
}

/** Paths are relative to the page, so that they stay below whatever prefix it is served under. */
function prepare(path: string, options: Options): Request {
  const headers: Record<string, string> = { accept: options.accept ?? "application/json", ...options.headers };
  const key = currentKey();
  if (key !== null) headers.authorization = `Bearer ${key}`;
  return new Request(path, { method: options.method ?? "GET", headers, body: options.body, signal: options.signal, credentials: "same-origin", cache: "no-store" });
}

/** An answer of success; everything else is thrown as a `Failure`. On 401 a key is asked for, and the request is sent again. */
export async function request(path: string, options: Options = {}): Promise<Response> {
  for (;;) {
    const key = currentKey();
    const prepared = prepare(path, options);
    let failure: Failure;
    try {
      const response = await fetch(prepared);
      if (response.ok) return response;
      failure = await readFailure(response);
    } catch (error) {
      if (isAbort(error)) throw error;
      failure = noAnswer();
    }
    if (!options.optional) void noticeOutage(failure);
    if (!(await mayRepeat(failure, key))) throw failure;
    options.signal?.throwIfAborted();
  }
}

/** True where there is another key than `key` after a refusal. */
export async function mayRepeat(failure: Failure, key: string | null): Promise<boolean> {
  if (failure.status !== 401) return false;
  // Another request may have got a key while this one was under way.
  return currentKey() !== key || askForKey(key === null ? "" : failure.message);
}

export function noAnswer(): Failure {
  return new Failure("The request got no answer.", null, 0);
}

let watching = false;
const alive = () => fetch("livez", { cache: "no-store", signal: AbortSignal.timeout(10_000) }).then((response) => response.ok, () => false);

/** Asks for the service itself after a request without its answer, and until it answers again. */
export async function noticeOutage(failure: Failure): Promise<void> {
  const unanswered = failure.problem === null && (failure.status === 0 || failure.status >= 502);
  if (!unanswered || watching) return;
  watching = true;
  while (!(await alive())) {
    reachable.value = false;
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
  watching = false;
  if (reachable.value) return;
  reachable.value = true;
  renewals.value++;
}

export async function json<T>(path: string, options: Options = {}): Promise<T> {
  const response = await request(path, options);
  return (await response.json()) as T;
}

/** The service refuses a text with half a character, as a cut in the middle of an emoji leaves it. */
const wellFormed = (_name: string, value: unknown) => (typeof value === "string" ? value.toWellFormed() : value);

export function post<T>(path: string, body: unknown, options: Options = {}): Promise<T> {
  return json<T>(path, { ...options, method: "POST", body: JSON.stringify(body, wellFormed), headers: { "content-type": "application/json", ...options.headers } });
}

export function query(parameters: Record<string, string | number | boolean | null | undefined>): string {
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}
