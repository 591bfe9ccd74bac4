"""What a browser is handed: two small pages, their style and scripts, and the headers that bind them.

The pages load nothing but files of this server, and the browser is told to refuse anything else.
"""

from __future__ import annotations

from html import escape

DOOR = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>gonogo</title>
<link rel="stylesheet" href="/door.css"><script src="/door.js" defer></script></head>
<body><p id="said">The link that <code>gonogo serve</code> printed opens the console, once.</p>
<noscript><p>The console needs JavaScript.</p></noscript></body></html>
"""
"""The page that takes the token out of the address. All that somebody without a pass can see."""

DOOR_SCRIPT = """'use strict';
// The token stands behind the #, which browsers send nowhere by themselves; nor can looking ahead use it up.
const token = location.hash.slice(1);
history.replaceState(null, '', location.pathname);
if (token) {
  fetch('/enter', {method: 'POST', body: token, credentials: 'same-origin'}).then(async (answer) => {
    const text = await answer.text();
    if (answer.ok) location.replace(text); else document.getElementById('said').textContent = text;
  }, () => { document.getElementById('said').textContent = 'gonogo serve does not answer; does it still run?'; });
}
"""

DOOR_STYLE = "body { font: 16px monospace; margin: 3em; color: #ddd; background: #111; }\n"

SCRIPT = """'use strict';
// The terminal makes style elements as it runs; the browser takes them with this page's nonce only.
{
  const nonce = document.currentScript.nonce;
  const make = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const made = make(name, options);
    if (String(name).toLowerCase() === 'style') made.nonce = nonce;
    return made;
  };
  // Text on the screen may be anybody's: an address in it opens nothing.
  window.open = () => null;
  // Keys go to the console at once, not only after a click into it.
  window.addEventListener('load', () => {
    setTimeout(() => document.querySelector('.xterm-helper-textarea').focus());
  });
  window.addEventListener('DOMContentLoaded', () => {
    document.getElementById('again').addEventListener('click', () => location.reload());
    // The websocket lies beside this page.
    const terminal = document.getElementById('terminal');
    terminal.dataset.sessionWebsocketUrl = 'ws://' + location.host + location.pathname + 'ws';
  });
}
"""

STYLE = """@font-face { font-family: 'Roboto Mono'; font-weight: 100 700;
  src: url('static/fonts/RobotoMono-VariableFont_wght.ttf'); }
@font-face { font-family: 'Roboto Mono'; font-style: italic; font-weight: 100 700;
  src: url('static/fonts/RobotoMono-Italic-VariableFont_wght.ttf'); }
html, body { margin: 0; height: 100%; overflow: hidden; background: #111; color: #ddd;
  font: 16px 'Roboto Mono', monospace; }
/* The terminal measures its cells once: the font has to be there before it does. */
#font { position: absolute; left: -100em; }
#terminal { width: 100vw; height: 100vh; }
#ended { display: none; position: absolute; z-index: 20; top: 30%; left: 0; right: 0; margin: auto; width: 26em;
  padding: 1.5em; background: #333; border: 1px solid #999; }
body.-closed #ended { display: block; }
#ended button { font: inherit; }
"""

_CONSOLE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="static/css/xterm.css"><link rel="stylesheet" href="console.css">
<script src="console.js" nonce="{nonce}"></script><script src="static/js/textual.js"></script></head>
<body><div id="ended"><p>This console has ended, or every seat is taken.</p>
<button id="again" type="button">Open it again</button></div><p id="font" aria-hidden="true">gonogo</p>
<div id="terminal" class="textual-terminal" data-font-size="16"></div></body></html>
"""


def console_page(title: str, nonce: str) -> str:
    """The page with the console.

    Args:
        title: What the browser's tab is called; may be foreign text, made safe for a screen.
        nonce: The nonce of this page, the same as in its headers.
    """
    return _CONSOLE.format(title=escape(title), nonce=escape(nonce))


def headers(host: str, nonce: str = "") -> dict[str, str]:
    """The headers of every answer.

    Args:
        host: The name and port by which the browser calls us; one that the doors let through, else empty.
        nonce: Lets the style elements of one page be; empty for none.
    """
    style = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
    # Not every browser takes a websocket of the same server to be covered by 'self'.
    connect = f"'self' ws://{host}" if host else "'self'"
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": style,
        "font-src": "'self'",
        "connect-src": connect,
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), clipboard-read=(), geolocation=(), microphone=()",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
    }
