package bypasstest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// definition is a random definition of the steps dialect, which the model reads and which
// is written as a document for the product.
type definition struct {
	id        string
	meta      string
	functions []function
	items     []*step
	// bodies are the top-level steps that only loops use.
	bodies []*step
}

// step is one step of a definition; it is a loop step if its field loop is set.
type step struct {
	id string
	// serial makes the texts of the step unique; see secretMark.
	serial    int
	when      *test
	confirm   *confirmation
	human     bool
	criteria  *rule
	template  string
	role      bool
	guidance  bool
	functions []function
	refers    []string
	loop      *loop
}

// confirmation is requireConfirmation: true, or a condition.
type confirmation struct{ when *test }

type function struct{ name, text string }

// loop is the configuration of a loop and its body.
type loop struct {
	kind  string
	when  *test
	count any
	items string
	most  int
	// round, item and index are the names of the loop's variables; "" means the default.
	round, item, index string
	body               []*step
	// ref reports whether the body is a top-level step.
	ref bool
}

// test is a condition. The operators and, or and not have operands; all others except
// always have a variable.
type test struct {
	op       string
	variable string
	value    any
	of       []*test
}

// rule is a criterion: a list, a composition or a simple rule.
type rule struct {
	kind     string
	message  string
	text     string
	flags    string
	min, max int
	shape    testSchema
	when     *test
	of       []*rule
	// template reports whether a check reads the variable size.
	template bool
}

// secretMark and titleMark return the marks by which a test finds the texts of a step in an
// answer. secretMark is in its prompt, role, guidance, criteria and functions, titleMark in
// its title.
func (s *step) secretMark() string { return fmt.Sprintf("SECRET-%d-", s.serial) }
func (s *step) titleMark() string  { return fmt.Sprintf("Title TITLE-%d-", s.serial) }

func (l *loop) roundVar() string { return orDefault(l.round, "currentIteration") }
func (l *loop) itemVar() string  { return orDefault(l.item, "currentItem") }
func (l *loop) indexVar() string { return orDefault(l.index, "currentIndex") }

func orDefault(name, fallback string) string {
	if name == "" {
		return fallback
	}
	return name
}

// allSteps returns every step and loop once, including bodies.
func (d *definition) allSteps() []*step {
	var list []*step
	for _, s := range d.items {
		list = append(list, s)
		if s.loop != nil && !s.loop.ref {
			list = append(list, s.loop.body...)
		}
	}
	return append(list, d.bodies...)
}

// marshalDefinition returns the definition as a document for the product.
func (d *definition) marshalDefinition() []byte {
	var list []any
	for _, s := range append(append([]*step{}, d.items...), d.bodies...) {
		list = append(list, s.stepDocument())
	}
	m := map[string]any{
		"id": d.id, "name": "Random", "description": "A random definition.", "version": "1.0.0", "steps": list,
	}
	if d.meta != "" {
		m["metaGuidance"] = []any{d.meta}
	}
	putList(m, "functionDefinitions", functionDocuments(d.functions))
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err) // unreachable: the generator only uses JSON values
	}
	return text
}

func (s *step) stepDocument() map[string]any {
	m := map[string]any{"id": s.id, "title": s.titleMark()}
	if s.when != nil {
		m["runCondition"] = s.when.conditionDocument()
	}
	if s.human {
		m["approval"] = "human"
	}
	if s.confirm != nil {
		m["requireConfirmation"] = any(true)
		if s.confirm.when != nil {
			m["requireConfirmation"] = s.confirm.when.conditionDocument()
		}
	}
	putList(m, "functionDefinitions", functionDocuments(s.functions))
	if s.loop != nil {
		s.loop.fillDocument(m)
		return m
	}
	m["prompt"] = s.promptText()
	if s.role {
		m["agentRole"] = "You are the role of " + s.secretMark()
	}
	if s.guidance {
		m["guidance"] = []any{"Mind " + s.secretMark()}
	}
	if s.criteria != nil {
		m["validationCriteria"] = s.criteria.ruleDocument()
	}
	var refs []any
	for _, r := range s.refers {
		refs = append(refs, r+"()")
	}
	putList(m, "functionReferences", refs)
	return m
}

func (s *step) promptText() string { return "Do " + s.secretMark() + s.template + "." }

func (l *loop) fillDocument(m map[string]any) {
	c := map[string]any{"type": l.kind, "maxIterations": l.most}
	switch l.kind {
	case "for":
		c["count"] = l.count
	case "forEach":
		c["items"] = l.items
	default:
		c["condition"] = l.when.conditionDocument()
	}
	for key, name := range map[string]string{"iterationVar": l.round, "itemVar": l.item, "indexVar": l.index} {
		if name != "" {
			c[key] = name
		}
	}
	m["type"], m["loop"] = "loop", c
	if l.ref {
		m["body"] = l.body[0].id
		return
	}
	var body []any
	for _, b := range l.body {
		body = append(body, b.stepDocument())
	}
	m["body"] = body
}

func (t *test) conditionDocument() map[string]any {
	switch t.op {
	case "always":
		return map[string]any{}
	case "truthy":
		return map[string]any{"var": t.variable}
	case "and", "or":
		list := make([]any, len(t.of))
		for i, part := range t.of {
			list[i] = part.conditionDocument()
		}
		return map[string]any{t.op: list}
	case "not":
		return map[string]any{"not": t.of[0].conditionDocument()}
	default:
		return map[string]any{"var": t.variable, t.op: t.value}
	}
}

func (r *rule) ruleDocument() any {
	list := make([]any, len(r.of))
	for i, part := range r.of {
		list[i] = part.ruleDocument()
	}
	switch r.kind {
	case "list":
		return list
	case "and", "or":
		return map[string]any{r.kind: list}
	case "not":
		return map[string]any{"not": list[0]}
	}
	m := map[string]any{"type": r.kind, "message": r.message}
	switch r.kind {
	case "check":
		m["check"] = r.text
		if r.template {
			m["with"] = map[string]any{"package": "{{size}}"}
		}
	case "command":
		m["argv"] = []any{r.text, "all"}
		if r.template {
			m["argv"] = []any{r.text, "{{size}}"}
		}
	case "contains":
		m["value"] = r.text
	case "regex":
		m["pattern"] = r.text
		if r.flags != "" {
			m["flags"] = r.flags
		}
	case "length":
		m["min"], m["max"] = r.min, r.max
	case "schema":
		m["schema"] = r.shape.schema
	}
	if r.when != nil {
		m["condition"] = r.when.conditionDocument()
	}
	return m
}

// hasCheck reports whether the rule is or contains a check.
func (r *rule) hasCheck() bool {
	return r != nil && (r.kind == "check" || r.kind == "command" || slices.ContainsFunc(r.of, (*rule).hasCheck))
}

func functionDocuments(list []function) []any {
	var out []any
	for _, f := range list {
		out = append(out, map[string]any{"name": f.name, "definition": f.text})
	}
	return out
}

func putList(m map[string]any, key string, list []any) {
	if len(list) > 0 {
		m[key] = list
	}
}
