// The query language, as far as an editor must know it: colours, and what may come next.

import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { StreamParser } from "@codemirror/language";

/** The functions that the server knows, by name. */
export const FUNCTIONS = (
  "ABS ACOS AGO ARRAY_AVG ARRAY_CONCAT ARRAY_CONTAINS ARRAY_CONTAINS_ALL ARRAY_CONTAINS_ANY " +
    "ARRAY_LENGTH ARRAY_MAX ARRAY_MEDIAN ARRAY_MIN ARRAY_SLICE ARRAY_SUM ASIN ATAN ATN2 AVG " +
    "CEILING CHOOSE CONCAT CONTAINS CONTAINS_ALL_CI CONTAINS_ALL_CS CONTAINS_ANY_CI " +
    "CONTAINS_ANY_CS COS COT COUNT COUNTIF DATETIMEADD DATETIMEBIN DATETIMEDIFF " +
    "DATETIMEFORMAT DATETIMEFROMPARTS DATETIMEPART DATETIMETOTICKS DATETIMETOTIMESTAMP DAY " +
    "DEGREES DOCUMENTID ENDSWITH EXP FLOOR FULLTEXTCONTAINS FULLTEXTCONTAINSALL " +
    "FULLTEXTCONTAINSANY FULLTEXTSCORE GETCURRENTDATETIME GETCURRENTDATETIMESTATIC " +
    "GETCURRENTTICKS GETCURRENTTICKSSTATIC GETCURRENTTIMESTAMP GETCURRENTTIMESTAMPSTATIC IIF " +
    "INDEX_OF INTADD INTBITAND INTBITLEFTSHIFT INTBITNOT INTBITOR INTBITRIGHTSHIFT INTBITXOR " +
    "INTDIV INTMOD INTMUL INTSUB IS_ARRAY IS_BOOL IS_BOOLEAN IS_DATETIME IS_DEFINED " +
    "IS_FINITE_NUMBER IS_INTEGER IS_NULL IS_NUMBER IS_OBJECT IS_PRIMITIVE IS_STRING " +
    "LASTINDEXOF LEFT LENGTH LOG LOG10 LOWER LTRIM MAKELIST MAKESET MAX MIN MONTH NOW " +
    "NUMBERBIN OBJECTTOARRAY PI POWER RADIANS RAND REGEXMATCH REPLACE REPLICATE REVERSE " +
    "RIGHT ROUND RRF RTRIM SETDIFFERENCE SETEQUAL SETINTERSECT SETUNION SIGN SIN SQRT SQUARE " +
    "STARTSWITH STRINGEQUALS STRINGJOIN STRINGSPLIT STRINGTOARRAY STRINGTOBOOLEAN " +
    "STRINGTONULL STRINGTONUMBER STRINGTOOBJECT ST_AREA ST_DISTANCE ST_INTERSECTS ST_ISVALID " +
    "ST_ISVALIDDETAILED ST_WITHIN SUBSTRING SUM TAN TICKSTODATETIME TIMESTAMPTODATETIME " +
    "TOSTRING TRIM TRUNC UPPER VECTORDISTANCE YEAR"
).split(" ");

export const KEYWORDS = (
  "AND ARRAY AS ASC BETWEEN BY DESC DISTINCT ESCAPE EXISTS FROM GROUP IN JOIN LIKE LIMIT NOT " +
  "OFFSET OR ORDER SELECT TOP VALUE WHERE"
).split(" ");

const WORDS = new Set(["true", "false", "null", "undefined", "udf"]);
const functions = new Set(FUNCTIONS);
const keywords = new Set(KEYWORDS);

export const sql: StreamParser<{ afterDot: boolean; comment: boolean }> = {
  name: "sql",
  startState: () => ({ afterDot: false, comment: false }),
  token(stream, state) {
    if (state.comment) {
      state.comment = !stream.match(/.*?\*\//);
      if (state.comment) stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    const { afterDot } = state;
    state.afterDot = false;
    if (stream.match("--")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match("/*")) {
      state.comment = !stream.match(/.*?\*\//);
      if (state.comment) stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?/)) return "string";
    if (stream.match(/(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/)) return "number";
    if (stream.match(/@\w+/)) return "variableName.special";
    const word = stream.match(/[\p{L}_][\p{L}\p{N}_]*/u) as RegExpMatchArray | null;
    if (word) {
      if (afterDot) return "propertyName";
      if (WORDS.has(word[0])) return "atom";
      const name = word[0].toUpperCase();
      if (functions.has(name) && stream.match(/\s*\(/, false)) return "variableName.function";
      return keywords.has(name) ? "keyword" : "variableName";
    }
    state.afterDot = stream.next() === ".";
    return null;
  },
  languageData: { commentTokens: { line: "--", block: { open: "/*", close: "*/" } } },
};

/** After a dot the names of items, else keywords and functions. */
export function completions(context: CompletionContext, names: readonly string[]): CompletionResult | null {
  const dotted = context.matchBefore(/\.[\p{L}\p{N}_]*/u);
  if (dotted) {
    return {
      from: dotted.from + 1,
      options: names.map((label) => ({ label, type: "property" })),
      validFor: /^[\p{L}\p{N}_]*$/u,
    };
  }
  const word = context.matchBefore(/[\p{L}_][\p{L}\p{N}_]*/u);
  if (!word && !context.explicit) return null;
  return {
    from: word?.from ?? context.pos,
    options: [
      ...KEYWORDS.map((label) => ({ label, type: "keyword" })),
      ...FUNCTIONS.map((label) => ({ label, type: "function", apply: `${label}(` })),
    ],
    validFor: /^[\p{L}\p{N}_]*$/u,
  };
}
