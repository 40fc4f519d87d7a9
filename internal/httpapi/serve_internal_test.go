package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A request whose body does not arrive is ended. An answer that takes longer than the time
// limit of the body is not cut off.
func TestBodyDeadline(t *testing.T) {
	t.Parallel()
	const limit = 50 * time.Millisecond
	read := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
		case <-time.After(3 * limit):
			_, _ = io.WriteString(w, "late")
		}
	})
	srv := httptest.NewServer(bodyDeadline(handler, limit))
	defer srv.Close()
	client := srv.Client()
	defer client.CloseIdleConnections()

	resp, err := sendPost(t, client, srv.URL, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(body) != "late" || <-read != nil {
		t.Errorf("the late answer is %q, %v", body, err)
	}

	never, end := io.Pipe()
	defer func() { _ = end.Close() }()
	if resp, err := sendPost(t, client, srv.URL, never); err == nil {
		_ = resp.Body.Close()
	}
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a missing body returns %v, want the deadline", err)
	}
}

func sendPost(t *testing.T, client *http.Client, url string, body io.Reader) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(r)
}
