/** The Bot Framework for JavaScript keeps the state of conversations here. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { CosmosClient } from "@azure/cosmos";
import { ConversationState, TestAdapter } from "botbuilder";
import { CosmosDbPartitionedStorage } from "botbuilder-azure";
import { startDayfly } from "dayfly-test";

const MONTH = 30 * 24 * 60 * 60;

let dayfly;
let database;
before(async () => { dayfly = await startDayfly(); });
beforeEach(async () => {
  await dayfly.reset();
  ({ database } = await new CosmosClient(dayfly.connectionString).databases.create({ id: "bots" }));
});
after(() => dayfly.stop());

/** A storage in a container of its own: the program makes each only once in a process. */
function makeStorage(containerId, more = {}) {
  return new CosmosDbPartitionedStorage({
    cosmosDbEndpoint: dayfly.endpoint,
    authKey: dayfly.key,
    databaseId: "bots",
    containerId,
    ...more,
  });
}

/** Says something to a bot that counts the messages of a conversation. */
function say(storage, expected) {
  const state = new ConversationState(storage);
  const count = state.createProperty("count");
  const bot = new TestAdapter(async (turn) => {
    const number = (await count.get(turn, 0)) + 1;
    await count.set(turn, number);
    await turn.sendActivity(`message ${number}`);
    await state.saveChanges(turn);
  });
  return bot.test("hello", expected).startTest();
}

for (const [name, more] of [
  ["as it is", {}],
  ["with a suffix", { compatibilityMode: false, keySuffix: "-suffix" }],
]) {
  test(`items are written, read and deleted, ${name}`, async () => {
    const storage = makeStorage(`items ${name}`, more);
    const keys = ["plain", "a/b\\c?d#e*f", "Zoë 你好 🪰", "k".repeat(200)];
    assert.deepEqual(await storage.read(keys), {});
    await storage.write(Object.fromEntries(keys.map((key) => [key, { text: `of ${key}` }])));
    const found = await storage.read([...keys, "missing"]);
    assert.deepEqual(Object.keys(found).sort(), keys.toSorted());
    for (const key of keys) assert.equal(found[key].text, `of ${key}`);

    await storage.delete(["plain", "missing"]);
    assert.deepEqual(Object.keys(await storage.read(keys)).sort(), keys.slice(1).sort());
  });
}

test("an old version is not written", async () => {
  const storage = makeStorage("versions");
  await storage.write({ note: { text: "first" } });
  const { note } = await storage.read(["note"]);
  await storage.write({ note: { ...note, text: "second" } });
  await assert.rejects(storage.write({ note: { ...note, text: "lost" } }), { code: 412 });
  await storage.write({ note: { text: "third", eTag: "*" } });
  assert.equal((await storage.read(["note"])).note.text, "third");
});

test("a conversation expires a month after its last message", async () => {
  await database.containers.create({ id: "month", partitionKey: "/id", defaultTtl: MONTH });
  const storage = makeStorage("month");
  await say(storage, "message 1");
  await dayfly.advance(MONTH - 1);
  await say(storage, "message 2");
  await dayfly.advance(MONTH - 1);
  await say(storage, "message 3");
  await dayfly.advance(MONTH);
  await say(storage, "message 1");
});
