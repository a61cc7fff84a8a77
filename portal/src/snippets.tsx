// Six lines for each SDK: with the right scheme, and how https is trusted.

import { useSignal } from "@preact/signals";
import { emulatorKey } from "./known";
import { Button, Choice, copy } from "./ui";

type Language = "python" | "javascript" | "java" | "dotnet" | "go" | "rust" | "curl";

const NAMES: readonly (readonly [Language, string])[] = [
  ["python", "Python"],
  ["javascript", "JavaScript"],
  ["java", "Java"],
  ["dotnet", ".NET"],
  ["go", "Go"],
  ["rust", "Rust"],
  ["curl", "curl"],
];

interface At {
  url: string;
  key: string;
  pem: string;
}

const PEM = "curl -s -o emulator.pem";

const CODE: Record<Language, (at: At) => string> = {
  python: ({ url, key }) => `# pip install azure-cosmos
from azure.cosmos import CosmosClient, PartitionKey
client = CosmosClient("${url}", "${key}")
shop = client.create_database_if_not_exists("shop")
carts = shop.create_container_if_not_exists("carts", PartitionKey("/customer"), default_ttl=3600)
carts.upsert_item({"id": "1", "customer": "ann", "ttl": 30})  # lives 30 seconds`,
  javascript: ({ url, key }) => `import { CosmosClient } from "@azure/cosmos"; // npm install @azure/cosmos
const client = new CosmosClient({ endpoint: "${url}", key: "${key}" });
const { database: shop } = await client.databases.createIfNotExists({ id: "shop" });
const { container: carts } = await shop.containers.createIfNotExists({
  id: "carts", partitionKey: "/customer", defaultTtl: 3600 });
await carts.items.upsert({ id: "1", customer: "ann", ttl: 30 }); // lives 30 seconds`,
  java: ({ url, key }) => `System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");
var client = new CosmosClientBuilder().endpoint("${url}").key("${key}").gatewayMode().buildClient();
client.createDatabaseIfNotExists("shop");
client.getDatabase("shop").createContainerIfNotExists(
    new CosmosContainerProperties("carts", "/customer").setDefaultTimeToLiveInSeconds(3600));
client.getDatabase("shop").getContainer("carts").upsertItem(Map.of("id", "1", "customer", "ann", "ttl", 30));`,
  dotnet: ({ url, key }) => `var client = new CosmosClient("${url}", "${key}",
    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway });
Database shop = await client.CreateDatabaseIfNotExistsAsync("shop");
Container carts = await shop.CreateContainerIfNotExistsAsync(
    new ContainerProperties("carts", "/customer") { DefaultTimeToLive = 3600 });
await carts.UpsertItemAsync(new { id = "1", customer = "ann", ttl = 30 }); // lives 30 seconds`,
  go: ({ url, key }) => `key, _ := azcosmos.NewKeyCredential("${key}")
client, _ := azcosmos.NewClientWithKey("${url}", key, nil)
hour := int32(3600); client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shop"}, nil)
shop, _ := client.NewDatabase("shop"); shop.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "carts",
	PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/customer"}}, DefaultTimeToLive: &hour}, nil)
carts, _ := shop.NewContainer("carts"); carts.UpsertItem(ctx, azcosmos.NewPartitionKeyString("ann"), item, nil)`,
  rust: ({ url, key }) => `let account = AccountReference::with_authentication_key("${url}".parse()?, "${key}".to_owned());
let client = CosmosClient::builder().build(account, RoutingStrategy::PreferredRegions(vec![])).await?;
client.create_database("shop", None).await?;
let properties = ContainerProperties::new("carts", "/customer".into()).with_default_ttl(TimeToLive::Seconds(3600));
client.database_client("shop".to_owned()).create_container(properties, None).await?;
// azure_data_cosmos with the features control_plane and key_auth; docs/sdks.md has the whole program`,
  curl: ({ url, key, pem }) => `KEY='${key}'
curl ${pem}-H "authorization: Bearer $KEY" ${url}_admin/v1/containers
# for the REST API, a session of the same key:
TOKEN=$(curl ${pem}-s -X POST -H "authorization: Bearer $KEY" ${url}_admin/v1/session | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
curl ${pem}-H "authorization: Bearer $TOKEN" ${url}dbs -d '{"id":"shop"}'
curl ${pem}-H "authorization: Bearer $TOKEN" ${url}dbs`,
};

/** How a language is told to trust the certificate. */
const TRUST: Record<Language, string> = {
  python: "export REQUESTS_CA_BUNDLE=$PWD/emulator.pem   # not needed for localhost",
  javascript: "export NODE_EXTRA_CA_CERTS=$PWD/emulator.pem",
  java: `keytool -importcert -noprompt -alias dayfly -file emulator.pem -keystore dayfly.p12 -storepass changeit
java -Djavax.net.ssl.trustStore=dayfly.p12 -Djavax.net.ssl.trustStorePassword=changeit …`,
  dotnet: "export SSL_CERT_FILE=$PWD/emulator.pem   # or DisableServerCertificateValidation=True; in a connection string",
  go: "export SSL_CERT_FILE=$PWD/emulator.pem",
  rust: "# in the program: ConnectionPoolOptions::builder()\n#   .with_server_certificate_validation(ServerCertificateValidation::RequiredUnlessEmulator)",
  curl: "# --cacert emulator.pem, as above",
};

export function Snippets({ endpoints, wellKnown }: { endpoints: { scheme: string; url: string }[]; wellKnown: boolean }) {
  const language = useSignal<Language>("python");
  const schemes = endpoints.map(({ scheme }) => [scheme, scheme] as const);
  const scheme = useSignal(endpoints.find((of) => of.scheme === "http")?.scheme ?? endpoints[0]?.scheme ?? "http");
  const url = endpoints.find((of) => of.scheme === scheme.value)?.url ?? "";
  const https = scheme.value === "https";
  const at = { url, key: wellKnown ? emulatorKey : "<your key>", pem: https ? "--cacert emulator.pem " : "" };
  let code = CODE[language.value](at);
  if (https && language.value === "java") code = code.split("\n").slice(1).join("\n");
  const trust = https ? `${PEM} -k ${url}_explorer/emulator.pem\n${TRUST[language.value]}` : null;
  return (
    <div class="snippets">
      <div class="row">
        <Choice label="Language" value={language.value} options={NAMES} onChange={(next) => (language.value = next)} />
        {schemes.length > 1 && (
          <Choice label="Scheme" value={scheme.value} options={schemes} onChange={(next) => (scheme.value = next)} />
        )}
        <span class="space" />
        <Button onClick={() => void copy(code, "The code")}>Copy</Button>
      </div>
      <pre class="code" tabIndex={0}>
        {code}
      </pre>
      {trust && (
        <>
          <p class="soft">So that the certificate is trusted:</p>
          <pre class="code" tabIndex={0}>
            {trust}
          </pre>
        </>
      )}
    </div>
  );
}
