package notice

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/procsession"
	"github.com/guideway-dev/guideway/internal/platform/visible"
)

// Receiver is a webhook or a command that receives notices.
type Receiver struct {
	Name string
	// Types are the types that the receiver receives.
	Types []Type
	// URL is the address of a webhook, Secret the key of its signature; without a secret
	// nothing is signed. Plain sends {"text": …} as the webhooks of chat systems expect it.
	URL    string
	Secret string
	Plain  bool
	// Command is the command with its arguments, if URL is empty.
	Command []string
	// Timeout is the time limit of one delivery.
	Timeout time.Duration
	// UserAgent is the header of that name.
	UserAgent string
	// Shared reports whether other instances of the deployment deliver to the same receiver.
	Shared bool
}

// Target identifies the receiver for all instances.
func (r *Receiver) Target() string { return r.URL + "\x00" + strings.Join(r.Command, "\x00") }

// maxAnswer is the maximum number of bytes of an HTTP response, or of a command's output,
// that an error quotes.
const maxAnswer = 300

// Deliver sends a notice once. It returns an error if the receiver did not accept it.
func (r *Receiver) Deliver(ctx context.Context, n Notice) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	var err error
	if r.URL != "" {
		err = r.post(ctx, n)
	} else {
		err = r.runCommand(ctx, n)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return guideway.Errorf(guideway.CodeUnavailable, "the receiver %q did not accept the notice within %s", r.Name, r.Timeout).
			WithFix(`make the receiver faster, or raise its "timeout" in guideway.json`)
	}
	return err
}

// post sends a notice to a webhook, signed as https://www.standardwebhooks.com specifies it.
func (r *Receiver) post(ctx context.Context, n Notice) error {
	var body any = n
	if r.Plain {
		body = map[string]string{"text": plainText(n)}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(data))
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalid, "send a notice to the receiver %q: %w", r.Name, withoutURL(err))
	}
	sent := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", r.UserAgent)
	req.Header.Set("Webhook-Id", n.ID)
	req.Header.Set("Webhook-Timestamp", sent)
	if r.Secret != "" {
		req.Header.Set("Webhook-Signature", sign(r.Secret, n.ID, sent, data))
	}
	// A redirect would send the notice to an address that is not configured.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(req)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "send a notice to the receiver %q: %w", r.Name, withoutURL(err))
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode/100 != 2 {
		return guideway.Errorf(guideway.CodeUnavailable, "the receiver %q answered with HTTP status %s%s", r.Name, answer.Status, quoteAnswer(text))
	}
	return nil
}

// withoutURL returns the cause of an error of the HTTP client. The addresses of the webhooks
// of chat systems are secrets.
func withoutURL(err error) error {
	for {
		cause := errors.Unwrap(err)
		if cause == nil || !strings.Contains(err.Error(), "://") {
			return err
		}
		err = cause
	}
}

// sign returns the value of the header Webhook-Signature. A secret that begins with "whsec_"
// is in base64.
func sign(secret, id, sent string, body []byte) string {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = decoded
		}
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, sent, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// plainText returns the text of a notice for a chat system. Titles cannot mention people or
// channels there, because the characters of such mentions are escaped.
func plainText(n Notice) string {
	text := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b").Replace(n.Text)
	return strings.Join(slices.DeleteFunc([]string{text, n.URL, n.Command}, func(s string) bool { return s == "" }), "\n")
}

// runCommand runs the command of a receiver with the notice as JSON on its standard input.
func (r *Receiver) runCommand(ctx context.Context, n Notice) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...) //nolint:gosec // G204: the command of the user's configuration
	cmd.Env = append(os.Environ(), "GUIDEWAY_NOTICE_ID="+n.ID, "GUIDEWAY_NOTICE_TYPE="+string(n.Type), "GUIDEWAY_NOTICE_TEXT="+n.Text, "GUIDEWAY_NOTICE_URL="+n.URL)
	cmd.Stdin = bytes.NewReader(append(data, '\n'))
	var output tail
	cmd.Stdout, cmd.Stderr = &output, &output // the standard output of this process may carry the protocol
	procsession.Own(cmd)
	cmd.Cancel = func() error { return procsession.Kill(cmd) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "run the command of the receiver %q: %w%s", r.Name, err, quoteAnswer(output.data))
	}
	return nil
}

// quoteAnswer returns the text of an answer for an error, or "".
func quoteAnswer(text []byte) string {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return ""
	}
	return ": " + visible.EscapeLine(string(text))
}

// tail contains the last bytes that were written to it.
type tail struct{ data []byte }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if over := len(t.data) - maxAnswer; over > 0 {
		t.data = slices.Clone(t.data[over:])
	}
	return len(p), nil
}
