package httpapi

import (
	"bytes"
	"io"
	"net/http"
)

// Metrics writes the metrics.
type Metrics interface {
	// Metrics writes all metrics in the text format of Prometheus.
	Metrics(w io.Writer) error
}

// getMetrics answers /metrics. The metrics name upstreams and tools, so the route requires
// RightRead.
func (a *api) getMetrics(c *call) (any, error) {
	var text bytes.Buffer
	if err := a.Metrics.Metrics(&text); err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(text.Bytes()) // The reader may have disconnected.
	return responseWritten{}, nil
}
