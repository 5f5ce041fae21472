import { scoresPath } from "./calls";
import { request } from "./http";
import type { SampleLine } from "./schemas";

/** A connection that nobody reads from is given up after so long: browsers have few of them for a service. */
const IDLE = 3000;
/** Lines may be long, with a score by each of 256 methods. */
const KEPT = 1000;

/**
 * The lines of an audit's samples, read from the stream as far as they are asked for. The last ones are kept as text. For what comes
 * before them, and for more after the stream was given up, it is asked for again, and lines are skipped.
 */
export class ScoreReader {
  private lines: string[] = [];
  /** The index of the first line that is kept. */
  private start = 0;
  private rest = "";
  private ended = false;
  /** Lines that this stream has given. */
  private given = 0;
  private reader: ReadableStreamDefaultReader<string> | null = null;
  private controller = new AbortController();
  private idle: ReturnType<typeof setTimeout> | undefined;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly id: string) {}

  /** The samples from `first`, at most `length`. */
  page(first: number, length: number): Promise<SampleLine[]> {
    const page = this.turn.then(async () => {
      clearTimeout(this.idle);
      if (first < this.start) this.restart();
      await this.read(first, first + length);
      this.idle = setTimeout(() => this.close(), IDLE);
      return this.lines.slice(first - this.start, first - this.start + length).map((line) => JSON.parse(line) as SampleLine);
    });
    this.turn = page.catch(() => undefined);
    return page;
  }

  close(): void {
    clearTimeout(this.idle);
    this.controller.abort();
    this.reader = null;
  }

  private restart(): void {
    this.close();
    this.lines = [];
    this.start = 0;
    this.ended = false;
  }

  private async read(first: number, until: number): Promise<void> {
    while (this.start + this.lines.length < until && !this.ended) {
      const reader = this.reader ?? (await this.open());
      const part = await reader.read().catch((error) => {
        this.reader = null;
        throw error;
      });
      const lines = (this.rest + (part.value ?? "")).split("\n");
      this.rest = part.done ? "" : (lines.pop() ?? "");
      for (const line of lines) {
        if (line === "") continue;
        if (this.given === this.start + this.lines.length) this.lines.push(line);
        this.given++;
      }
      const unneeded = Math.min(this.lines.length - KEPT, first - this.start);
      if (unneeded > 0) this.start += this.lines.splice(0, unneeded).length;
      this.ended = part.done;
    }
    if (this.ended) this.close();
  }

  private async open(): Promise<ReadableStreamDefaultReader<string>> {
    this.controller = new AbortController();
    this.given = 0;
    this.rest = "";
    const response = await request(scoresPath(this.id), { accept: "application/x-ndjson", signal: this.controller.signal });
    this.reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    return this.reader;
  }
}
