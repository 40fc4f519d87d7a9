package workflow

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/spf13/cobra"
)

// SchemaOptions is the command line of guideway schema.
type SchemaOptions struct {
	app  *app.App
	Name string
	Kind string
}

// schemaNames returns the names of all JSON Schemas.
func schemaNames() []string { return append(dialectNames(), schemaChecks, schemaConfig) }

// The schemas of files that are not definitions.
const (
	schemaChecks = "checks"
	schemaConfig = "config"
)

func NewSchemaCmd(a *app.App, run func(context.Context, *SchemaOptions) error) *cobra.Command {
	o := &SchemaOptions{app: a}
	cmd := &cobra.Command{
		Use:       "schema {" + strings.Join(schemaNames(), "|") + "}",
		ValidArgs: schemaNames(),
		Args: func(cmd *cobra.Command, args []string) error {
			if err := app.ExactArgs(1, "one of "+strings.Join(schemaNames(), ", "), "guideway schema "+schemaNames()[0])(cmd, args); err != nil {
				return err
			}
			if slices.Contains(schemaNames(), args[0]) {
				return nil
			}
			return guideway.Errorf(guideway.CodeInvalid, "there is no schema %q; the schemas are %s", args[0], strings.Join(schemaNames(), ", ")).
				WithFix("guideway schema %s", schemaNames()[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			isDialect := slices.Contains(dialectNames(), o.Name)
			if !isDialect && o.Kind != "" {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--kind applies only to the schema of a dialect, not to %s", o.Name).WithFix("guideway schema %s", o.Name)}
			}
			if isDialect {
				if err := checkKind(o.Name, o.Kind); err != nil {
					return err
				}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Kind, "kind", "", "`kind` of the documents: "+strings.Join(kindNames(""), ", ")+" (default: workflow, graph or machine)")
	app.AddFixedCompletion(cmd, "kind", kindNames(""))
	return cmd
}

func RunSchema(_ context.Context, o *SchemaOptions) error {
	var text []byte
	switch o.Name {
	case schemaConfig:
		text = config.Schema()
	case schemaChecks:
		text = checksfile.Schema()
	default:
		text = workflow.Schema(workflow.As{Dialect: guideway.Dialect(o.Name), Kind: phases.Kind(o.Kind)})
	}
	fmt.Fprintf(o.app.Host.Out, "%s\n", bytes.TrimSpace(text))
	return nil
}
