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
func (a *api) metrics(c *call) (any, error) {
	var text bytes.Buffer
	if err := a.Metrics.Metrics(&text); err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(text.Bytes()) // the reader may be gone
	return responseWritten{}, nil
}
