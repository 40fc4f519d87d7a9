package httpapi

import (
	"bytes"
	"io"
	"net/http"
)

// Metrics is what the surface needs of what is counted.
type Metrics interface {
	// Metrics writes all figures in the text format of Prometheus.
	Metrics(w io.Writer) error
}

// metrics answers /metrics. It names upstreams and tools, so whoever reads it must
// be allowed to read all else.
func (a *api) metrics(w http.ResponseWriter, _ *http.Request) error {
	var text bytes.Buffer
	if err := a.Metrics.Metrics(&text); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text.Bytes()) // the reader may be gone
	return nil
}
