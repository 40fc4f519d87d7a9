package notice_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/notice"
)

// request is a request that a webhook received.
type request struct {
	header http.Header
	body   string
}

// startWebhook starts a webhook that answers with a status.
func startWebhook(t *testing.T, status int, headers ...string) (url string, received *[]request) {
	t.Helper()
	received = &[]request{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*received = append(*received, request{r.Header.Clone(), string(body)})
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "no \x1b[31mthanks")
	}))
	t.Cleanup(server.Close)
	return server.URL, received
}

func testNotice() notice.Notice {
	return notice.Notice{
		ID: "n_r_1_7", Type: notice.TypeGate, At: time.Unix(1700000000, 0).UTC(),
		Text: "<!channel> deploy & @here waits", Command: "guideway runs approve r_1", RunID: "r_1",
	}
}

// TestWebhook checks the body and the signature of a webhook, by the rules of Standard
// Webhooks.
func TestWebhook(t *testing.T) {
	t.Parallel()
	key := []byte("a key of the receiver")
	for _, secret := range []string{string(key), "whsec_" + base64.StdEncoding.EncodeToString(key)} {
		url, received := startWebhook(t, http.StatusNoContent)
		r := notice.Receiver{Name: "team", URL: url, Secret: secret, Timeout: time.Minute, UserAgent: "guideway/test"}
		if err := r.Deliver(t.Context(), testNotice()); err != nil {
			t.Fatal(err)
		}
		got := (*received)[0]
		var n notice.Notice
		if err := json.Unmarshal([]byte(got.body), &n); err != nil || n != testNotice() {
			t.Errorf("body %s, error %v", got.body, err)
		}
		if id := got.header.Get("Webhook-Id"); id != "n_r_1_7" {
			t.Errorf("id %q", id)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte("n_r_1_7." + got.header.Get("Webhook-Timestamp") + "." + got.body))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.header.Get("Webhook-Signature") != want {
			t.Errorf("signature %q, want %q", got.header.Get("Webhook-Signature"), want)
		}
	}
}

// TestPlainWebhook checks that the text for chat systems is escaped, so that it mentions no
// member of a chat.
func TestPlainWebhook(t *testing.T) {
	t.Parallel()
	url, received := startWebhook(t, http.StatusOK)
	r := notice.Receiver{Name: "team", URL: url, Plain: true, Timeout: time.Minute}
	if err := r.Deliver(t.Context(), testNotice()); err != nil {
		t.Fatal(err)
	}
	var body map[string]string
	if err := json.Unmarshal([]byte((*received)[0].body), &body); err != nil || len(body) != 1 {
		t.Fatalf("body %s, error %v", (*received)[0].body, err)
	}
	if want := "&lt;!channel&gt; deploy &amp; @\u200bhere waits\nguideway runs approve r_1"; body["text"] != want {
		t.Errorf("text %q, want %q", body["text"], want)
	}
	if (*received)[0].header.Get("Webhook-Signature") != "" {
		t.Error("a notice without a secret is signed")
	}
}

// TestRefusingWebhook checks that errors and redirects are not deliveries, that a redirect
// is not followed, and that errors do not show the address.
func TestRefusingWebhook(t *testing.T) {
	t.Parallel()
	other, stolen := startWebhook(t, http.StatusOK)
	for status, want := range map[int]string{
		http.StatusInternalServerError: "500 Internal Server Error: no \\u{001B}[31mthanks",
		http.StatusFound:               "302 Found",
		http.StatusNotModified:         "304 Not Modified",
	} {
		url, _ := startWebhook(t, status, "Location", other)
		r := notice.Receiver{Name: "team", URL: url + "/SECRET", Timeout: time.Minute}
		err := r.Deliver(t.Context(), testNotice())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%d: error %v, want %q", status, err, want)
		}
	}
	if len(*stolen) > 0 {
		t.Error("a redirect was followed")
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	r := notice.Receiver{Name: "team", URL: gone.URL + "/SECRET", Timeout: time.Minute}
	if err := r.Deliver(t.Context(), testNotice()); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a dead receiver: %v", err)
	}
}

// TestHangingWebhook checks the time limit of a delivery.
func TestHangingWebhook(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	r := notice.Receiver{Name: "team", URL: server.URL, Timeout: 20 * time.Millisecond}
	if err := r.Deliver(t.Context(), testNotice()); err == nil || !strings.Contains(err.Error(), "within 20ms") {
		t.Errorf("error %v", err)
	}
}

// TestCommand checks that a command gets the notice, that its error is reported, and that
// it and its child processes are killed at the time limit.
func TestCommand(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands of this test need sh")
	}
	file := filepath.Join(t.TempDir(), "out")
	run := func(timeout time.Duration, script string) error {
		r := notice.Receiver{Name: "desk", Command: []string{"sh", "-c", script, "sh", file}, Timeout: timeout}
		return r.Deliver(context.Background(), testNotice())
	}
	if err := run(time.Minute, `echo "$GUIDEWAY_NOTICE_ID $GUIDEWAY_NOTICE_TYPE" >"$1"; cat >>"$1"`); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	first, body, _ := strings.Cut(string(text), "\n")
	var n notice.Notice
	if err != nil || first != "n_r_1_7 gate" || json.Unmarshal([]byte(body), &n) != nil || n != testNotice() {
		t.Errorf("the command received %q, error %v", text, err)
	}
	if err := run(time.Minute, "echo broken >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3: broken") {
		t.Errorf("error %v", err)
	}
	// The child would hold the pipe of the output for an hour.
	if err := run(300*time.Millisecond, "sleep 3600 & sleep 3600"); err == nil || !strings.Contains(err.Error(), "within 300ms") {
		t.Errorf("error %v", err)
	}
}
