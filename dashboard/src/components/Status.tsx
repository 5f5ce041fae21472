import type { Job } from "../api/schemas";
import { count } from "../pure/format";

export function StatusLabel({ status }: { status: Job["status"] }) {
  return <span class="status">{status}</span>;
}

/** A bar and its words. What is read before anything is scored is said in words alone. */
export function ProgressBar({ progress, label }: { progress: Job["progress"]; label: string }) {
  return (
    <p>
      <progress class="wide-bar" aria-label={label} max={Math.max(progress.total, 1)} value={progress.done} />
      <span>{progressWords(progress)}</span>
    </p>
  );
}

export function progressWords(progress: Job["progress"]): string {
  const words = `${count(progress.done)} of ${count(progress.total)} done`;
  if ("testing" in progress && progress.testing) return `${words}; permutations and the report are computed`;
  if ("read" in progress && progress.read != null && progress.done === 0) return `${count(progress.read)} samples read, none scored yet`;
  if ("windows" in progress && progress.windows != null) return `${words}, ${count(progress.windows)} windows`;
  return words;
}
