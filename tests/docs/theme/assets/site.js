// What people who use the keyboard or a screen reader need of parts that Material makes in the browser.
const mend = () => {
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap")) each.tabIndex = 0;
  for (const each of document.querySelectorAll(".md-code__nav")) each.role = "presentation";
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
