package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// openAPI is the description of the HTTP API, in the order of its file.
type openAPI struct {
	t       *testing.T
	root    *yaml.Node
	schemas *jsonschema.Compiler
}

const openAPIAddress = "https://guideway.example/openapi.json"

func readOpenAPI(t *testing.T) *openAPI {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "httpapi", "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	var whole any
	if err := yaml.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	if err := document.Decode(&whole); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource(openAPIAddress, value); err != nil {
		t.Fatal(err)
	}
	return &openAPI{t: t, root: document.Content[0], schemas: compiler}
}

// at walks to a member, through references; nil if there is none.
func (o *openAPI) at(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		n = o.resolve(n)
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		found := (*yaml.Node)(nil)
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				found = n.Content[i+1]
			}
		}
		n = found
	}
	return o.resolve(n)
}

func (o *openAPI) resolve(n *yaml.Node) *yaml.Node {
	if ref := referenceOf(n); ref != "" {
		return o.at(o.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return n
}

// referenceOf is what a node refers to, if it does.
func referenceOf(n *yaml.Node) string {
	if n != nil && n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "$ref" {
		return n.Content[1].Value
	}
	return ""
}

func (o *openAPI) text(n *yaml.Node, path ...string) string {
	if n = o.at(n, path...); n == nil {
		return ""
	}
	return strings.TrimSpace(n.Value)
}

// members are the pairs of an object, in their order.
func members(n *yaml.Node) [][2]*yaml.Node {
	var pairs [][2]*yaml.Node
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			pairs = append(pairs, [2]*yaml.Node{n.Content[i], n.Content[i+1]})
		}
	}
	return pairs
}

// referenceOfAPI: the reference of the API is what its description says, with an example of each
// route. Each example of an answer fits the schema of that answer, and TestDocumentation
// sends each request to a server.
func referenceOfAPI(t *testing.T) {
	t.Helper()
	o := readOpenAPI(t)
	var want strings.Builder
	want.WriteString(`# Routes of the HTTP API

Written by ` + "`go test ./internal/cli -run TestReference -update`" + ` from the description of the API. [api.md](../api.md) says who may do what, and what all answers have in common; each error is a [Problem](#problem). Of the examples, answers have their required members only; each request is sent to a server by a test.

`)
	for _, tag := range o.at(o.root, "tags").Content {
		fmt.Fprintf(&want, "- [%s](#%s): %s\n", title(o.text(tag, "name")), o.text(tag, "name"), o.text(tag, "description"))
	}
	for _, tag := range o.at(o.root, "tags").Content {
		fmt.Fprintf(&want, "\n## %s\n", title(o.text(tag, "name")))
		for _, path := range members(o.at(o.root, "paths")) {
			for _, method := range members(path[1]) {
				if tags := o.at(method[1], "tags"); tags != nil && tags.Content[0].Value == o.text(tag, "name") {
					o.route(&want, path[0].Value, method[0].Value, method[1])
				}
			}
		}
	}
	want.WriteString("\n## Objects\n")
	for _, schema := range members(o.at(o.root, "components", "schemas")) {
		o.object(&want, schema[0].Value, schema[1])
	}
	reference(t, "api.md", want.String())
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func (o *openAPI) route(w *strings.Builder, path, method string, n *yaml.Node) {
	fmt.Fprintf(w, "\n### %s %s\n\n%s.", strings.ToUpper(method), path, strings.TrimSuffix(o.text(n, "summary"), "."))
	if text := strings.Join(strings.Fields(o.text(n, "description")), " "); text != "" {
		fmt.Fprintf(w, " %s", text)
	}
	if security := o.at(n, "security"); security != nil && len(security.Content) == 0 {
		w.WriteString(" Open to anybody.")
	}
	w.WriteString("\n")
	query, rows := "", ""
	parameters := o.at(n, "parameters")
	if parameters == nil {
		parameters = &yaml.Node{}
	}
	for _, p := range slices.Concat(parameters.Content, o.shared(path)) {
		p = o.resolve(p)
		name, where := o.text(p, "name"), o.text(p, "in")
		must := ""
		if o.text(p, "required") == "true" {
			must = ", required"
		}
		rows += strings.TrimRight(fmt.Sprintf("| `%s` | %s%s | %s | %s", name, where, must, o.kind(o.at(p, "schema")), o.text(p, "description")), " ") + " |\n"
		value := strings.Trim(o.example(o.at(p, "schema"), singular(path, name), 0), `"`)
		switch {
		case where == "path":
			path = strings.ReplaceAll(path, "{"+name+"}", value)
		case where == "query" && must != "":
			query += "&" + name + "=" + value
		}
	}
	if rows != "" {
		w.WriteString("\n| Parameter | In | Takes | |\n|---|---|---|---|\n" + rows)
	}
	body := ""
	if schema := o.content(o.at(n, "requestBody")); schema != nil {
		body = o.example(schema, "", 0) + "\n"
		if said := saidBodies[o.text(n, "operationId")]; said != "" {
			o.fits(path, schema, said)
			body = said + "\n"
		}
		fmt.Fprintf(w, "\nTakes %s.\n", o.kind(schema))
	}
	answer := o.answers(w, strings.ToUpper(method)+" "+path, n)
	if query != "" {
		path += "?" + query[1:]
	}
	fmt.Fprintf(w, "\n```http\n%s %s\n%s\n%s\n```\n", strings.ToUpper(method), path, body, answer)
}

// shared are the parameters of all methods of a path.
func (o *openAPI) shared(path string) []*yaml.Node {
	if n := o.at(o.root, "paths", path, "parameters"); n != nil {
		return n.Content
	}
	return nil
}

// singular is what a name stands for: the id of /api/runs/{id} is a run's.
func singular(path, name string) string {
	before, _, _ := strings.Cut(path, "/{"+name+"}")
	if kind := before[strings.LastIndex(before, "/")+1:]; name == "id" || name == "name" {
		return strings.TrimSuffix(kind, "s")
	}
	return name
}

// content is the schema of a body, as it is written: it may be a reference.
func (o *openAPI) content(n *yaml.Node) *yaml.Node {
	for _, kind := range members(o.at(n, "content")) {
		for _, m := range members(kind[1]) {
			if m[0].Value == "schema" {
				return m[1]
			}
		}
	}
	return nil
}

// answers tells of the answers, and gives an example of the one that is hoped for.
func (o *openAPI) answers(w *strings.Builder, what string, n *yaml.Node) string {
	var errors []string
	example := ""
	w.WriteString("\n")
	for _, answer := range members(o.at(n, "responses")) {
		status := answer[0].Value
		if status >= "400" {
			errors = append(errors, status)
			continue
		}
		response := o.resolve(answer[1])
		schema := o.content(response)
		fmt.Fprintf(w, "`%s`: %s %s\n", status, o.kind(schema), o.text(response, "description"))
		if example != "" || schema == nil {
			continue
		}
		if o.at(response, "content", "application/json") == nil {
			example = "200 (text/event-stream)"
			continue
		}
		text := o.example(schema, "", 0)
		o.fits(what, schema, text)
		example = status + " " + http.StatusText(200+int(status[2]-'0')) + "\n" + text
	}
	if len(errors) > 0 {
		fmt.Fprintf(w, "\nErrors: %s.\n", strings.Join(errors, ", "))
	}
	return example
}

// fits holds an example against its schema.
func (o *openAPI) fits(what string, schema *yaml.Node, text string) {
	o.t.Helper()
	ref := referenceOf(schema)
	if ref == "" {
		return // a schema of no name, of which the description itself is the example
	}
	compiled, err := o.schemas.Compile(openAPIAddress + ref)
	if err != nil {
		o.t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = compiled.Validate(value)
	}
	if err != nil {
		o.t.Errorf("%s: the example does not fit: %v\n%s", what, err, text)
	}
}

// kind says what a schema takes, in a few words.
func (o *openAPI) kind(n *yaml.Node) string {
	if ref := referenceOf(n); ref != "" {
		name := ref[strings.LastIndex(ref, "/")+1:]
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	switch {
	case n == nil:
		return ""
	case o.at(n, "const") != nil:
		return "`" + o.text(n, "const") + "`"
	case o.at(n, "enum") != nil:
		var words []string
		for _, word := range o.at(n, "enum").Content {
			words = append(words, "`"+word.Value+"`")
		}
		return strings.Join(words, ", ")
	case o.text(n, "type") == "array":
		return "list of " + o.kind(o.raw(n, "items"))
	}
	for _, either := range []string{"oneOf", "anyOf", "allOf"} {
		if of := o.at(n, either); of != nil {
			var words []string
			for _, one := range of.Content {
				words = append(words, o.kind(one))
			}
			return strings.Join(words, " or ")
		}
	}
	kind := o.at(n, "type")
	switch {
	case kind == nil:
		return "any"
	case kind.Kind == yaml.SequenceNode:
		var words []string
		for _, word := range kind.Content {
			words = append(words, word.Value)
		}
		return strings.Join(words, " or ")
	case o.text(n, "format") == "date-time":
		return "time"
	}
	return kind.Value
}

// raw is a member as it is written.
func (o *openAPI) raw(n *yaml.Node, name string) *yaml.Node {
	for _, m := range members(o.resolve(n)) {
		if m[0].Value == name {
			return m[1]
		}
	}
	return nil
}

func (o *openAPI) object(w *strings.Builder, name string, n *yaml.Node) {
	fmt.Fprintf(w, "\n### %s\n", name)
	if text := strings.Join(strings.Fields(o.text(n, "description")), " "); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	properties := members(o.at(n, "properties"))
	if len(properties) == 0 {
		fmt.Fprintf(w, "\nOne of %s.\n", o.kind(n))
		return
	}
	w.WriteString("\n| Member | Is | |\n|---|---|---|\n")
	for _, p := range properties {
		optional := "?"
		if required := o.at(n, "required"); required != nil && slices.ContainsFunc(required.Content, func(r *yaml.Node) bool { return r.Value == p[0].Value }) {
			optional = ""
		}
		text := ""
		if referenceOf(p[1]) == "" {
			text = strings.ReplaceAll(strings.Join(strings.Fields(o.text(p[1], "description")), " "), "|", `\|`)
		}
		fmt.Fprintf(w, "%s |\n", strings.TrimRight(fmt.Sprintf("| `%s`%s | %s | %s", p[0].Value, optional, o.kind(p[1]), text), " "))
	}
}
