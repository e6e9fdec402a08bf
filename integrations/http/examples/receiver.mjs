// A receiver of push: verifies signatures by Standard Webhooks, and does each job once. Node 18 or newer, no packages.
//
//     RECEIVER_SECRET=whsec_.. node receiver.mjs 8000

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const SECRETS = process.env.RECEIVER_SECRET.split(/\s+/).map((one) => Buffer.from(one.replace(/^whsec_/, ""), "base64"));
const TOLERANCE_S = 300; // an older signature may be a repetition by somebody who has overheard it
const BODY_BYTES_MAX = 8 << 20;
const KNOWN_MAX = 100_000; // ids of jobs that were done; a real program keeps them in its database, with its work

const known = new Set();

function isGenuine(headers, body) {
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_S) return false;
  const given = (headers["webhook-signature"] ?? "").split(" ").filter((one) => one.startsWith("v1,"));
  return SECRETS.some((secret) => {
    const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest();
    return given.some((one) => {
      const bytes = Buffer.from(one.slice(3), "base64");
      return bytes.length === signature.length && timingSafeEqual(bytes, signature);
    });
  });
}

// Do the job: here, print it. What throws is sent again.
function work(headers, body) {
  console.log("job", headers["webhook-id"], "of", headers["sockpq-queue"], body.toString());
}

async function receive(request, response) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) return response.writeHead(413, { connection: "close" }).end();
    parts.push(part);
  }
  const body = Buffer.concat(parts);
  if (request.method !== "POST" || !isGenuine(request.headers, body)) return response.writeHead(401).end();
  const id = request.headers["webhook-id"];
  if (!known.has(id)) {
    work(request.headers, body);
    known.add(id);
    if (known.size > KNOWN_MAX) known.delete(known.values().next().value);
  }
  response.writeHead(200).end();
}

const server = createServer((request, response) => {
  receive(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
});
server.listen(Number(process.argv[2] ?? 8000), "127.0.0.1", () => console.log("listening on", server.address().port));
