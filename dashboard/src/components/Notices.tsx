import type { ComponentChildren } from "preact";
import type { Failure } from "../api/failure";
import type { Problem } from "../api/schemas";
import { visible } from "../pure/text";

/** A refusal, with all that the service says of it. */
export function FailureNotice({ failure }: { failure: Failure | null }) {
  if (!failure) return null;
  if (!failure.problem) return <div class="notice fault" role="alert"><p>{visible(failure.message)}</p></div>;
  return <div class="notice fault" role="alert"><ProblemText problem={failure.problem} /></div>;
}

export function ProblemText({ problem }: { problem: Problem }) {
  return (
    <>
      <p><strong>{problem.title}</strong>{problem.detail && problem.detail !== problem.title ? `: ${visible(problem.detail)}` : ""}</p>
      {problem.errors && problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((fault, index) => (
            <li key={index}><code>{visible(fault.parameter ?? (fault.pointer || "the body"))}</code> {visible(fault.detail)}</li>
          ))}
        </ul>
      )}
      <p class="faint">Status {problem.status}, request <code>{problem.request_id}</code></p>
    </>
  );
}

export function Note({ children }: { children: ComponentChildren }) {
  return <p class="faint">{children}</p>;
}

/** `data` once it is there; else the failure, or that it is being loaded. */
export function Await<T>({ data, failure, children }: { data: T | null; failure: Failure | null; children: (data: T) => ComponentChildren }) {
  return (
    <>
      <FailureNotice failure={failure} />
      {data !== null ? children(data) : !failure && <p class="faint" role="status">Loading …</p>}
    </>
  );
}
