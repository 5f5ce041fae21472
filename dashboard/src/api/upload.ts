import { Failure, answerFailure } from "./failure";
import { mayRepeat, noAnswer, noticeOutage, query } from "./http";
import { currentKey } from "./key";
import type { Dataset } from "./schemas";

export interface Upload {
  body: Blob;
  contentType: string;
  parameters: Record<string, string>;
  /** Called with the bytes that were sent. */
  onSent(bytes: number): void;
  signal: AbortSignal;
}

/** Uploads a dataset with `XMLHttpRequest`, since `fetch` does not tell how much was sent. */
export async function uploadDataset(upload: Upload): Promise<Dataset> {
  for (;;) {
    const key = currentKey();
    try {
      return await send(upload, key);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      void noticeOutage(error);
      if (!(await mayRepeat(error, key))) throw error;
    }
  }
}

function send({ body, contentType, parameters, onSent, signal }: Upload, key: string | null): Promise<Dataset> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `v1/datasets${query(parameters)}`);
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("content-type", contentType);
    if (key !== null) request.setRequestHeader("authorization", `Bearer ${key}`);
    request.upload.onprogress = (event) => onSent(event.loaded);
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(answerFailure(request.status, request.statusText, request.responseText));
    };
    request.onerror = () => reject(noAnswer());
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(body);
  });
}
