// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/admission-dispatcher/dispatcher/internal/config"
	"github.com/admission-dispatcher/dispatcher/internal/server"
	"github.com/admission-dispatcher/dispatcher/registry"
)

// A process whose admission listener ends by itself serves nobody: it is an error, and
// while what is under way is answered it is not ready.
func TestListenerThatEnds(t *testing.T) {
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	a := &App{admin: &adminListener{Listener: admin}, parts: &parts{cfg: &config.Config{Listen: "127.0.0.1:0"}, log: slog.New(slog.DiscardHandler), state: newState()}}
	a.server = server.New(server.Config{
		TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Snapshot: func() *registry.Snapshot { return nil }, Logger: a.log,
	})
	ended := make(chan error, 1)
	go func() { ended <- a.serve(t.Context()) }()
	<-a.Ready()
	if why := a.unready(); len(why) > 0 {
		t.Errorf("at first it is not ready: %q", why)
	}
	if err := a.server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the admission listener failed") {
		t.Errorf("error %v", err)
	}
	if why := a.unready(); len(why) != 1 || why[0] != "stopping" {
		t.Errorf("it is ready: %q", why)
	}
}
