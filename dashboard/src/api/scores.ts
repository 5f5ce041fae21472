import { scoresPath } from "./calls";
import { request } from "./http";
import type { SampleLine } from "./schemas";

/** A connection that nobody reads from is given up after so long: browsers have few of them for a service. */
const IDLE = 3000;

/**
 * The lines of an audit's samples, read from the stream as far as they are asked for. Those that were read are kept as text. A stream
 * that was given up is asked for again where more is needed, and the lines that are known are skipped.
 */
export class ScoreReader {
  private lines: string[] = [];
  private rest = "";
  private ended = false;
  private skipped = 0;
  private reader: ReadableStreamDefaultReader<string> | null = null;
  private controller = new AbortController();
  private idle: ReturnType<typeof setTimeout> | undefined;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly id: string) {}

  /** The samples from `first`, at most `length`. */
  page(first: number, length: number): Promise<SampleLine[]> {
    const page = this.turn.then(async () => {
      clearTimeout(this.idle);
      await this.read(first + length);
      this.idle = setTimeout(() => this.close(), IDLE);
      return this.lines.slice(first, first + length).map((line) => JSON.parse(line) as SampleLine);
    });
    this.turn = page.catch(() => undefined);
    return page;
  }

  close(): void {
    clearTimeout(this.idle);
    this.controller.abort();
    this.reader = null;
  }

  private async read(until: number): Promise<void> {
    while (this.lines.length < until && !this.ended) {
      const reader = this.reader ?? (await this.open());
      const part = await reader.read().catch((error) => {
        this.reader = null;
        throw error;
      });
      const lines = (this.rest + (part.value ?? "")).split("\n");
      this.rest = part.done ? "" : (lines.pop() ?? "");
      for (const line of lines) {
        if (line === "") continue;
        if (this.skipped < this.lines.length) this.skipped++;
        else this.skipped = this.lines.push(line);
      }
      this.ended = part.done;
    }
    if (this.ended) this.close();
  }

  private async open(): Promise<ReadableStreamDefaultReader<string>> {
    this.controller = new AbortController();
    this.skipped = 0;
    this.rest = "";
    const response = await request(scoresPath(this.id), { accept: "application/x-ndjson", signal: this.controller.signal });
    this.reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    return this.reader;
  }
}
