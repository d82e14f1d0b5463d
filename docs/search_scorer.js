// Guide pages rank before API pages and examples, unless the query is the name of an object.
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) =>
    score - (kind !== "object" && /^(generated|api|auto_examples|examples|guide|glossary)/.test(docname) ? 20 : 0) - (anchor ? 2 : 0),
  objNameMatch: 30,
  objPartialMatch: 1,
  objPrio: {0: 0, 1: 0, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
