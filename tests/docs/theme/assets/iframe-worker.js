// Browsers start no worker on a page that is a file. The search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      this.frame.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.loaded = new Promise((done) => { this.frame.loaded = done; });
      this.frame.srcdoc = [
        "postMessage = (data) => frameElement.answer(data); importScripts = () => Promise.resolve();",
        "",
        "frameElement.loaded();",
      ].map((text) => `<script${text ? "" : ` src="${url}"`}>${text}</script>`).join("");
      document.body.append(this.frame);
    }
    postMessage(data) {
      this.loaded.then(() => {
        const frame = this.frame.contentWindow;
        frame.dispatchEvent(new frame.MessageEvent("message", { data }));
      });
    }
  };
}
