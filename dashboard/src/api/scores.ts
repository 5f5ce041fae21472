import { scoresPath } from "./calls";
import { request } from "./http";
import type { SampleLine } from "./schemas";

/**
 * The lines of an audit's samples, read from the stream as far as they are asked for. Those that were read are kept as text, and the
 * service sends no further ones than the connection buffers.
 */
export class ScoreReader {
  private lines: string[] = [];
  private rest = "";
  private ended = false;
  private reader: ReadableStreamDefaultReader<string> | null = null;
  private readonly controller = new AbortController();
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly id: string) {}

  /** The samples from `first`, at most `length`. */
  page(first: number, length: number): Promise<SampleLine[]> {
    const page = this.turn.then(async () => {
      await this.read(first + length);
      return this.lines.slice(first, first + length).map((line) => JSON.parse(line) as SampleLine);
    });
    this.turn = page.catch(() => undefined);
    return page;
  }

  close(): void {
    this.controller.abort();
  }

  private async read(until: number): Promise<void> {
    while (this.lines.length < until && !this.ended) {
      const reader = this.reader ?? (await this.open());
      let part: ReadableStreamReadResult<string>;
      try {
        part = await reader.read();
      } catch (error) {
        this.reader = null;
        this.lines = [];
        this.rest = "";
        throw error;
      }
      const text = this.rest + (part.value ?? "");
      const lines = text.split("\n");
      this.rest = part.done ? "" : (lines.pop() ?? "");
      for (const line of lines) if (line !== "") this.lines.push(line);
      this.ended = part.done;
    }
  }

  private async open(): Promise<ReadableStreamDefaultReader<string>> {
    const response = await request(scoresPath(this.id), { accept: "application/x-ndjson", signal: this.controller.signal });
    this.reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    return this.reader;
  }
}
