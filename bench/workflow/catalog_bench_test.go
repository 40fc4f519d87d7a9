package workflow

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/catalog"
)

// BenchmarkLoad reads 50 workflows from their files, which takes most of the time to the
// first answer.
func BenchmarkLoad(b *testing.B) {
	w, err := newWorkplace(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for name, dir := range map[string]string{"JSON": w.json, "YAML": w.yaml} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cat := catalog.New(catalog.Standard(catalog.Layout{Custom: []string{dir}}), catalog.Options{})
				if err := cat.Load(b.Context()); err != nil {
					b.Fatal(err)
				}
				if n := len(cat.Snapshot().List(catalog.Filter{})); n != workflowCount {
					b.Fatalf("%d workflows", n)
				}
			}
		})
	}
}
