package validate_test

import (
	"errors"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/validate"
)

const note = `
id: release-note
name: Release note
description: Write a note on a change.
version: 1.0.0
steps:
  - id: read-it
    title: Read the change
    prompt: Read the whole diff.
`

// Parse returns a valid document with its dialect, its kind and the hash of its content.
func ExampleParse() {
	document, err := validate.Parse([]byte(note), validate.Options{File: "release-note.yaml"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(document.Dialect, document.Kind, document.ID, document.Version)
	fmt.Println(document.Hash[:11])
	// Output:
	// steps workflow release-note 1.0.0
	// sha256:5f89
}

// Parse reports all errors of a document together, each with its line and its code.
func ExampleParse_invalid() {
	_, err := validate.Parse([]byte("id: x\nsteps: []\n"), validate.Options{Dialect: guideway.DialectSteps})
	var invalid *validate.Error
	if errors.As(err, &invalid) {
		for _, d := range invalid.Diagnostics {
			fmt.Println(d.Line, d.Code)
		}
	}
	// Output:
	// 1 field-missing
	// 1 field-missing
	// 1 field-missing
	// 1 text-length
	// 2 list-empty
}

// Safe returns warnings in addition to errors, for example for an editor.
func ExampleSafe_warnings() {
	result := validate.Safe([]byte(note+"    runCondition: { var: size, equals: large }\n"), validate.Options{File: "release-note.yaml"})
	fmt.Println(result.Valid())
	for _, d := range result.Diagnostics {
		fmt.Println(d.Severity, d.Code)
	}
	// Output:
	// true
	// warning variable-unset
}

// A hook graph is validated like a workflow.
func ExampleSafe_hooks() {
	graph := `{"id": "idle", "name": "Idle", "workflowType": "tools/call",
		"nodes": [{"id": "start", "type": "start"}, {"id": "end", "type": "end"}],
		"edges": [{"source": "start", "target": "end"}]}`
	for _, d := range validate.Safe([]byte(graph), validate.Options{Dialect: guideway.DialectHooks}).Diagnostics {
		fmt.Println(d.Severity, d.Code, d.Node)
	}
	// Output: error call-missing end
}

// Schema returns the JSON Schema of a kind of document, and nil for an unknown dialect.
func ExampleSchema() {
	schema := validate.Schema(guideway.DialectPhases, "workflow")
	fmt.Println(len(schema) > 0, validate.Schema("nothing", "") == nil)
	// Output: true true
}
