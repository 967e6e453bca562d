// Starts `omnigraph lsp` for .pg and .gq files. Everything that it says comes from there.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate(context) {
  const command = vscode.workspace.getConfiguration("omnigraph").get("command", "omnigraph");
  client = new LanguageClient(
    "omnigraph",
    "OmniGraph",
    { command, args: ["lsp"] },
    {
      documentSelector: [
        { scheme: "file", language: "omnigraph-schema" },
        { scheme: "file", language: "omnigraph-query" },
      ],
    },
  );
  context.subscriptions.push(client);
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `\`${command} lsp\` does not start: ${error.message}. Install omnigraph, or set omnigraph.command.`,
    );
  }
}

async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
