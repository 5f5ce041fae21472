export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

/** Server-sent events out of a text that arrives in parts. */
export class EventParser {
  private rest = "";
  private id = "";

  push(part: string): ServerEvent[] {
    const blocks = (this.rest + part).replaceAll("\r\n", "\n").split("\n\n");
    this.rest = blocks.pop() ?? "";
    const events: ServerEvent[] = [];
    for (const block of blocks) {
      let event = "message";
      const data: string[] = [];
      for (const line of block.split("\n")) {
        const colon = line.indexOf(":");
        if (colon <= 0) continue;
        const value = line.slice(colon + 1).replace(/^ /, "");
        const field = line.slice(0, colon);
        if (field === "id") this.id = value;
        else if (field === "event") event = value;
        else if (field === "data") data.push(value);
      }
      if (data.length > 0) events.push({ id: this.id, event, data: data.join("\n") });
    }
    return events;
  }
}
