// Written by `mnem setup opencode`; `mnem setup --undo opencode` deletes it.
// It hands this session's events to mnem-hook, waits for it a short time only, and never fails.
import { spawn } from "node:child_process";

const HOOK = "mnem-hook";
const PROMPT_MS = 2000; // the prompt waits so long at most, and the first one twice
const STORE_MS = 5000;
const MESSAGES_MAX = 200;
const ANSWER_CHARS_MAX = 100_000;

function ask(event, wait) {
  return new Promise((resolve) => {
    let answer = "";
    let child;
    const finish = (result) => {
      clearTimeout(timer);
      resolve(result);
    };
    const timer = setTimeout(() => {
      child?.kill("SIGKILL");
      finish({});
    }, wait);
    try {
      child = spawn(HOOK, [], { stdio: ["pipe", "pipe", "ignore"] });
      child.on("error", () => finish({}));
      child.stdin.on("error", () => {});
      child.stdout.on("data", (data) => {
        if (answer.length < ANSWER_CHARS_MAX) answer += data;
      });
      child.on("close", () => {
        try {
          finish(JSON.parse(answer));
        } catch {
          finish({});
        }
      });
      child.stdin.end(JSON.stringify({ client: "opencode", ...event }));
    } catch {
      finish({});
    }
  });
}

const textOf = (parts) =>
  (parts ?? [])
    .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
    .map((part) => part.text)
    .join("\n");

const contextOf = (answer) => answer?.hookSpecificOutput?.additionalContext ?? "";

export const mnem = async ({ client, directory }) => {
  const started = new Set();

  const messages = async (id) => {
    try {
      const query = { path: { id }, query: { limit: MESSAGES_MAX } };
      const { data } = await client.session.messages(query);
      const said = (data ?? []).filter(({ info }) => info.summary !== true);
      return said.slice(-MESSAGES_MAX).map(({ info, parts }) => ({
        id: info.id,
        role: info.role,
        content: textOf(parts),
        timestamp: new Date(info.time.created).toISOString(),
      }));
    } catch {
      return [];
    }
  };

  const event = (name, session_id, more) => ({
    hook_event_name: name,
    session_id,
    cwd: directory,
    ...more,
  });

  const isSubagent = async (id) => {
    try {
      const { data } = await client.session.get({ path: { id } });
      return Boolean(data?.parentID);
    } catch {
      return false;
    }
  };

  const store = async (name, id) => {
    if (await isSubagent(id)) return;
    await ask(event(name, id, { messages: await messages(id) }), STORE_MS);
  };

  return {
    "chat.message": async ({ sessionID }, output) => {
      const prompt = textOf(output.parts);
      const asked = [event("UserPromptSubmit", sessionID, { prompt })];
      if (!started.has(sessionID)) {
        started.add(sessionID);
        asked.unshift(event("SessionStart", sessionID, { source: "startup" }));
      }
      const context = [];
      // In turn, as the prompt is not told what the start told.
      for (const each of asked) context.push(contextOf(await ask(each, PROMPT_MS)));
      if (context.some(Boolean)) {
        output.message.system = [output.message.system, ...context]
          .filter(Boolean)
          .join("\n\n");
      }
    },
    "experimental.session.compacting": async ({ sessionID }, _output) => {
      await store("PreCompact", sessionID);
    },
    event: async ({ event: { type, properties } }) => {
      if (type === "session.idle") await store("Stop", properties.sessionID);
      if (type === "session.deleted") {
        started.delete(properties.info?.id);
        await ask(event("SessionEnd", properties.info?.id, {}), STORE_MS);
      }
    },
  };
};
