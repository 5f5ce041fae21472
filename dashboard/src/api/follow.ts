import { EventParser } from "../pure/events";
import { eventsPath, job as getJob } from "./calls";
import { Failure, isAbort, toFailure } from "./failure";
import { request } from "./http";
import { isFinal, type Job, type JobKind } from "./schemas";

export type Channel = "stream" | "polling";

export interface Follower {
  onJob(job: Job): void;
  onProgress(progress: Job["progress"]): void;
  onChannel(channel: Channel): void;
  onFailure(failure: Failure): void;
}

/** An answer that takes longer counts as none. */
const PATIENCE = 20_000;
/** After so long without an event the job is asked for. */
const SILENCE = 3000;
const RETRY = 5000;

/**
 * Follows a job until it ends: by its event stream, and by asking for it where the stream is silent or missing. The stream is read with
 * `fetch`, since an `EventSource` cannot send a key. Returns a function that ends it.
 */
export function follow(kind: JobKind, id: string, follower: Follower): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  let heard = 0;
  let lastEvent = "";
  let asking = false;

  const ask = async () => {
    if (asking || signal.aborted) return;
    asking = true;
    try {
      const job = await getJob(kind, id, AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]));
      heard = Date.now();
      follower.onJob(job);
      if (isFinal(job.status)) controller.abort();
    } catch (error) {
      if (isAbort(error)) return;
      const failure = toFailure(error);
      follower.onFailure(failure);
      if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) controller.abort();
    } finally {
      asking = false;
    }
  };

  const listen = async () => {
    while (!signal.aborted) {
      try {
        const headers: Record<string, string> = lastEvent ? { "last-event-id": lastEvent } : {};
        const response = await request(eventsPath(kind, id), { accept: "text/event-stream", headers, signal, optional: true });
        const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
        const parser = new EventParser();
        for (;;) {
          const { done, value } = await reader.read();
          if (done) break;
          for (const event of parser.push(value)) {
            heard = Date.now();
            lastEvent = event.id;
            follower.onChannel("stream");
            if (event.event === "progress") follower.onProgress(JSON.parse(event.data));
            else if (event.event === "status") await ask();
          }
        }
      } catch (error) {
        if (isAbort(error)) return;
      }
      if (signal.aborted) return;
      follower.onChannel("polling");
      await ask();
      await pause(RETRY, signal);
    }
  };

  const timer = setInterval(() => {
    if (Date.now() - heard < SILENCE) return;
    follower.onChannel("polling");
    void ask();
  }, 1000);
  signal.addEventListener("abort", () => clearInterval(timer));
  void ask().then(() => (signal.aborted ? undefined : listen()));
  return () => controller.abort();
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
