// Command proxy adds a bearer token to requests: the conformance suite cannot send its own
// headers. It changes nothing else, neither Host nor Origin, so that the suite can test the
// guard. It listens on loopback and is for tests only: its clients need no token.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("proxy", flag.ContinueOnError)
	flags.SetOutput(stderr)
	to := flags.String("to", "", "the `URL` of the server")
	tokenFile := flags.String("token-file", "", "the `file` of the bearer token")
	urlFile := flags.String("url-file", "", "write the proxy's URL, with the path of -to, to this `file`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return fmt.Errorf("read the flags: %w", err)
	}
	target, err := url.Parse(*to)
	if err != nil || target.Host == "" {
		return fmt.Errorf("-to is not the URL of a server: %q", *to)
	}
	if _, err := os.Stat(*tokenFile); err != nil {
		return fmt.Errorf("find the token: %w", err)
	}
	token, _, err := auth.LoadOrCreateToken(*tokenFile)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if *urlFile != "" {
		_, port, _ := strings.Cut(listener.Addr().String(), ":")
		if err := writeWhole(*urlFile, "http://localhost:"+port+target.Path+"\n"); err != nil {
			_ = listener.Close()
			return err
		}
	}
	return httpapi.Serve(ctx, listener, newProxy(target, token))
}

// maxBody is more than any server accepts.
const maxBody = 64 << 20

// newProxy forwards to the host of target and adds the token. It first reads the whole
// request body: net/http's server closes the body when an answer begins, and if its last
// byte but not its end was read, net/http's client breaks the connection during the answer.
func newProxy(target *url.URL, token string) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		FlushInterval: -1, // forward a stream's events immediately
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		r.TransferEncoding = nil
		forward.ServeHTTP(w, r)
	})
}

// writeWhole writes a file atomically, so that a waiting reader sees all of it.
func writeWhole(path, text string) error {
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the URL: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("write the URL: %w", err)
	}
	return nil
}
