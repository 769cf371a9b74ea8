// SPDX-License-Identifier: Apache-2.0

// Command plain is the dispatcher that one writes in an afternoon, with what every
// Go programmer knows: net/http, the Kubernetes types and their codec, a goroutine
// for each webhook. It is the peer of the benchmarks and does nothing to be slow:
// connections are kept alive, as many as there are calls at once.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "host:port to serve at")
	certFile := flag.String("cert", "", "serving certificate")
	keyFile := flag.String("key", "", "its key")
	caFile := flag.String("ca", "", "authorities of the callers and of the webhooks")
	urls := flag.String("webhooks", "", "URLs of the webhooks, separated by commas")
	flag.Parse()
	authorities, err := pool(*caFile)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           &dispatcher{client: newClient(authorities), webhooks: strings.Split(*urls, ",")},
		ReadHeaderTimeout: 5 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs:  authorities,
		},
	}
	fmt.Fprintln(os.Stdout, ln.Addr())
	return server.ServeTLS(ln, *certFile, *keyFile)
}

func pool(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s: no certificate", file)
	}
	return authorities, nil
}

// newClient keeps as many idle connections as there can be calls at once: with the
// two of the default most calls would shake hands.
func newClient(authorities *x509.CertPool) *http.Client {
	const connections = 4096
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = connections, connections
	transport.Proxy = nil
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}
