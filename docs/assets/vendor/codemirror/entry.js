// The editor of an exercise, from CodeMirror 6. `make editor` builds editor.bundle.js from this.
//
// All colours are variables of the site, so the editor follows a switch of the scheme by itself.

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  gutter,
  GutterMarker,
  keymap,
  lineNumbers,
  WidgetType,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--md-code-hl-comment-color)" },
  { tag: [tags.string, tags.character, tags.docString], color: "var(--md-code-hl-string-color)" },
  { tag: tags.escape, color: "var(--md-code-hl-special-color)" },
  { tag: tags.number, color: "var(--md-code-hl-number-color)" },
  { tag: [tags.bool, tags.null, tags.self], color: "var(--md-code-hl-constant-color)" },
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--md-code-hl-keyword-color)" },
  {
    tag: [tags.definition(tags.function(tags.variableName)), tags.definition(tags.className)],
    color: "var(--md-code-hl-function-color)",
  },
  { tag: tags.meta, color: "var(--md-code-hl-special-color)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--md-code-fg-color)", backgroundColor: "var(--md-code-bg-color)" },
  "&.cm-focused": { outline: "0.1rem solid var(--md-accent-fg-color)" },
  ".cm-scroller": { fontFamily: "var(--md-code-font-family)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--md-default-fg-color)" },
  ".cm-gutters": {
    color: "var(--md-default-fg-color--light)",
    backgroundColor: "transparent",
    border: "0",
  },
  ".cm-error-gutter": {
    width: "0.9em",
    color: "var(--md-code-hl-number-color)",
    fontWeight: "bold",
    textAlign: "center",
  },
  ".cm-error-line": { boxShadow: "inset 0.15rem 0 var(--md-code-hl-number-color)" },
  ".cm-error-message": {
    padding: "0 6px",
    borderLeft: "0.15rem solid var(--md-code-hl-number-color)",
    color: "var(--md-code-hl-number-color)",
    fontFamily: "var(--md-text-font-family)",
    whiteSpace: "pre-wrap",
  },
  "&.cm-focused .cm-matchingBracket": {
    backgroundColor: "transparent",
    outline: "1px solid var(--md-default-fg-color--light)",
  },
  "&.cm-focused .cm-nonmatchingBracket": {
    backgroundColor: "transparent",
    outline: "1px solid var(--md-code-hl-number-color)",
  },
});

class Message extends WidgetType {
  constructor(text) {
    super();
    this.text = text;
  }

  eq(other) {
    return other.text === this.text;
  }

  toDOM() {
    const element = document.createElement("div");
    element.className = "cm-error-message";
    element.textContent = this.text;
    return element;
  }
}

// The mark of an error: {at, message}, or null. It moves with its line; editing that line lifts it.
const setMark = StateEffect.define();
const markField = StateField.define({
  create: () => null,
  update(mark, { effects, docChanged, startState, changes }) {
    for (const effect of effects) if (effect.is(setMark)) return effect.value;
    if (!mark || !docChanged) return mark;
    const line = startState.doc.lineAt(mark.at);
    if (changes.touchesRange(line.from, line.to)) return null;
    return { ...mark, at: changes.mapPos(mark.at, 1) };
  },
});

// gutters are hidden from screen readers, so the message stands in the text, below its line
const markedLine = EditorView.decorations.compute([markField], (state) => {
  const mark = state.field(markField);
  if (!mark) return Decoration.none;
  const line = state.doc.lineAt(mark.at);
  const message = Decoration.widget({ widget: new Message(mark.message), block: true, side: 1 });
  const stripe = Decoration.line({ class: "cm-error-line" });
  return Decoration.set([stripe.range(line.from), message.range(line.to)]);
});

class Sign extends GutterMarker {
  toDOM() {
    return document.createTextNode("!");
  }
}
const sign = new Sign();

const markedGutter = gutter({
  class: "cm-error-gutter",
  lineMarker: (view, line) => (view.state.field(markField)?.at === line.from ? sign : null),
  lineMarkerChange: ({ startState, state }) =>
    startState.field(markField) !== state.field(markField),
});

/**
 * Puts an editor of Python into `parent`.
 *
 * Tab indents; Escape and then Tab, or Ctrl-M (Mac: Shift-Alt-M) and then Tab, leaves the editor.
 * The page says so in the element whose id is `help`. `label` names the editor, `onChange(text)`
 * hears of every change, and `onRun()` of Ctrl-Enter or Cmd-Enter. `cursor` is an offset in `doc`.
 */
export function createEditor({ parent, doc, cursor = 0, label, help, onChange, onRun }) {
  const run = () => {
    onRun();
    return true;
  };
  const attributes = { "aria-label": label, ...(help && { "aria-describedby": help }) };
  const view = new EditorView({
    parent,
    doc,
    selection: { anchor: cursor },
    extensions: [
      // before the default keymap, in which Mod-Enter opens a line
      Prec.highest(keymap.of([{ key: "Mod-Enter", run }, { key: "Ctrl-Enter", run }])),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
      pythonLanguage,
      history(),
      closeBrackets(),
      bracketMatching(),
      indentOnInput(),
      indentUnit.of("    "),
      EditorState.tabSize.of(4),
      lineNumbers(),
      markField,
      markedLine,
      markedGutter,
      syntaxHighlighting(colours),
      look,
      EditorView.contentAttributes.of(attributes),
      EditorView.updateListener.of(({ docChanged, state }) => {
        if (docChanged) onChange(state.doc.toString());
      }),
    ],
  });
  return handle(view);
}

function handle(view) {
  return {
    text: () => view.state.doc.toString(),

    /** Replaces the text, as one step that undo takes back. */
    setText(text) {
      const changes = { from: 0, to: view.state.doc.length, insert: text };
      view.dispatch({ changes, selection: { anchor: 0 } });
    },

    /** Marks a line (from 1 on) and shows the message below it; null takes the mark away. */
    markError(line, message) {
      const { doc } = view.state;
      const known = line !== null && line >= 1 && line <= doc.lines;
      view.dispatch({ effects: setMark.of(known ? { at: doc.line(line).from, message } : null) });
    },

    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
