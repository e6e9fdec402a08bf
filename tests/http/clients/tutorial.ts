// The tutorial of docs/HTTP.md by a client that openapi-typescript has made of docs/openapi.json.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const path = { queue: "ts_mail" };

function sure<T>(value: T | undefined, what: unknown): T {
  if (value === undefined) throw new Error(JSON.stringify(what));
  return value;
}

const header = { "Idempotency-Key": "ts-1" };
for (const again of [false, true]) {
  const put = await client.POST("/v1/queues/{queue}/jobs", {
    params: { path, header }, body: { json: { to: "ann" }, priority: 5 },
  });
  const stored = sure(put.data, put.error);
  if (stored.outcome !== "new" || Boolean(stored.replayed) !== again) throw new Error(JSON.stringify(stored));
}

const take = await client.POST("/v1/queues/{queue}/take", { params: { path }, body: { lease: 60, wait: 10, count: 9 } });
const jobs = sure(take.data, take.error).jobs;
if (jobs.length !== 1 || jobs[0].priority !== 5) throw new Error(JSON.stringify(jobs));

const job_id = sure(jobs[0].id, jobs);
const done = await client.POST("/v1/jobs/{job_id}/done", { params: { path: { job_id } }, body: {} });
if (!sure(done.data, done.error).queue_done) throw new Error("it was the last one");

const late = await client.POST("/v1/jobs/{job_id}/done", { params: { path: { job_id } }, body: {} });
if (late.error?.status !== 404 || late.error.reason !== "Job Not Found") throw new Error(JSON.stringify(late.error));
console.log("ok");
