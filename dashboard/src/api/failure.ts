import type { Problem } from "./schemas";

/** A refusal of the service, or a request without its answer: then `problem` is null. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly problem: Problem | null,
    readonly status: number,
  ) {
    super(message);
  }
}

export function toFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure(error instanceof Error ? error.message : String(error), null, 0);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

export async function readFailure(response: Response): Promise<Failure> {
  return answerFailure(response.status, response.statusText, await response.text().catch(() => ""));
}

/** The problem that an answer has, if it has one. */
export function answerFailure(status: number, statusText: string, text: string): Failure {
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.title === "string") return new Failure(problem.detail || problem.title, problem, status);
  } catch {
    // Not a problem of the service; the status says what there is to say.
  }
  return new Failure(`The answer has the status ${status} ${statusText}`.trim(), null, status);
}
