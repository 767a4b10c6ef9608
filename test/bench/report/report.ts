import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { machineMs, ownMs } from "../frame/processor-time.ts";
import type { FigureRow } from "../frame/row.ts";
import { markdownFlatness, markdownTable, number } from "./table.ts";

/** The constants of a bench. */
export type Conditions = {
  readonly machine: { readonly cores: number; readonly model: string; readonly kernel: string; readonly node: string };
  readonly durability: string;
  readonly options: object;
  readonly scale: { readonly runs: number };
};

/** The files of a bench: JSON with all runs, and beside it the table for a document. */
export class Report {
  readonly #conditions: Conditions;
  readonly #startedAt = new Date();
  readonly #before = { machine: machineMs(), own: ownMs() };
  readonly json: string;
  readonly markdown: string;

  /** `json`: the path of the JSON file. */
  constructor(json: string, conditions: Conditions) {
    this.json = json;
    this.markdown = `${json.replace(/\.json$/, "")}.md`;
    this.#conditions = conditions;
  }

  get minutes(): number {
    return (Date.now() - this.#startedAt.getTime()) / 60_000;
  }

  /** How many cores other programs have used since the beginning. */
  get othersCores(): number {
    const others = machineMs() - this.#before.machine - (ownMs() - this.#before.own);
    return Math.max(0, others / (Date.now() - this.#startedAt.getTime()));
  }

  /** Called after each part, so that a bench that ends early leaves what it has measured. */
  write(rows: readonly FigureRow[]): void {
    const { minutes, othersCores } = this;
    const report = { startedAt: this.#startedAt, minutes, othersCores, ...this.#conditions, rows };
    mkdirSync(dirname(this.json), { recursive: true });
    writeFileSync(this.json, `${JSON.stringify(report, null, 2)}\n`);
    writeFileSync(
      this.markdown,
      `${[this.#about(), markdownTable(rows), markdownFlatness(rows)].join("\n\n").trim()}\n`,
    );
  }

  /** Explains `µs`, because the table stands alone. */
  #about(): string {
    const { machine, durability, scale } = this.#conditions;
    return [
      `Measured on ${this.#startedAt.toISOString().slice(0, 10)} in ${number(this.minutes)} minutes:`,
      `${machine.cores} × ${machine.model}, Linux ${machine.kernel}, Node ${machine.node}.`,
      `${durability}. Medians of ${scale.runs} runs. Other programs took ${number(this.othersCores)} cores meanwhile.`,
      "`µs` is the processor time of Tapedeck, NATS and Postgres together, per event or call.",
    ].join(" ");
  }
}
