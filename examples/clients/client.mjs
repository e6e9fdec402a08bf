// sockpqd from Node alone: exactly-once put and a worker, through any failover.
//
//   node client.mjs HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
//   node client.mjs HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
import net from "node:net";
import readline from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 10_000; // no answer takes longer, as GETB is told to wait for 5 seconds

class Connection {
  #buffer = Buffer.alloc(0);
  #wake = () => {};
  #closed = false;

  constructor(server) {
    const colon = server.lastIndexOf(":");
    this.socket = net.connect({ host: server.slice(0, colon), port: Number(server.slice(colon + 1)) });
    this.socket.setTimeout(PATIENCE_MS, () => this.socket.destroy());
    this.socket.on("data", (data) => { this.#buffer = Buffer.concat([this.#buffer, data]); this.#wake(); });
    this.socket.on("error", () => {});
    this.socket.on("close", () => { this.#closed = true; this.#wake(); });
  }

  /** Sends a text and returns the words of the first line of the answer. Throws when the connection is closed. */
  async ask(text, data = Buffer.alloc(0)) {
    this.socket.write(Buffer.concat([Buffer.from(text), data]));
    while (!this.#buffer.includes("\n")) await this.#more();
    return (await this.block(this.#buffer.indexOf("\n") + 1)).toString().trim().split(" ");
  }

  async block(length) {
    while (this.#buffer.length < length) await this.#more();
    const block = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return block;
  }

  async #more() {
    if (this.#closed) throw new Error("closed");
    await new Promise((resolve) => { this.#wake = resolve; });
  }
}

class Queue {
  #connection = null;
  #session = "";
  #number = 0;

  constructor(servers) { this.servers = servers; }

  /** Executes a command exactly once: under the same number until there is an answer. Resolves to its words and a job's body. */
  async call(line, data) {
    this.#number++;
    for (;; await pause(100)) {
      try {
        this.#connection ??= await this.#connect();
        const words = await this.#connection.ask(`REQ ${this.#number} ${line}\r\n`, data);
        if (!["500", "504"].includes(words[0]) && words.join(" ") !== "503 Busy") {
          if (words[0] !== "200" || !line.startsWith("GETB")) return { words };
          return { words, body: await this.#connection.block(Number(words[5])) };
        }
      } catch (error) {
        if (error.message !== "closed") throw error;
      }
      this.close(); // not executed, or nobody knows: again
    }
  }

  close() {
    this.#connection?.socket.destroy();
    this.#connection = null;
  }

  /** To the leader, and to our session; tries until it works. */
  async #connect() {
    let said = false;
    for (const begun = Date.now();; await pause(100)) {
      const ids = await Promise.all(this.servers.map(async (server) => {
        const connection = new Connection(server);
        const words = await connection.ask("INTERCONNECT\r\n").catch(() => []);
        connection.socket.destroy();
        return words[0] === "200" ? Number(words[2]) : Infinity;
      }));
      const best = Math.min(...ids); // the leader has the smallest number
      if (best === Infinity) {
        if (!said) console.error(`no server answers at ${this.servers}`);
        said = true;
        if (Date.now() - begun >= PATIENCE_MS) process.exit(1);
        continue;
      }
      const connection = new Connection(this.servers[ids.indexOf(best)]);
      const words = await connection.ask(`SESSION ${this.#session}`.trim() + "\r\n").catch(() => []);
      if (words[0] === "200") {
        this.#session = words[3];
        return connection;
      }
      connection.socket.destroy();
      if (words[0] === "404") throw new Error("the session is lost: nobody knows what was executed");
    }
  }
}

const [servers, what, name, count] = process.argv.slice(2);
if (!name || !(what === "put" || (what === "work" && /^\d+$/.test(count)))) {
  console.error("usage: client.mjs SERVERS put QUEUE | SERVERS work QUEUE COUNT");
  process.exit(64);
}
const queue = new Queue(servers.split(","));
if (what === "put") {
  for await (const text of readline.createInterface({ input: process.stdin })) {
    const data = Buffer.from(text);
    const { words } = await queue.call(`PUT ${name} 0 ${data.length}`, data);
    if (words[0] !== "200") throw new Error(words.join(" "));
  }
} else {
  for (let left = Number(count); left > 0;) {
    const { words, body } = await queue.call(`GETB ${name} EXPIRE 60 THEN LATER WITHIN 5`);
    if (words[0] !== "200") continue; // 404: none for 5 seconds
    if ((await queue.call(`DONE ${words[3]}`)).words[0] !== "200") continue;
    process.stdout.write(`${body}\n`);
    left--;
  }
}
queue.close();
