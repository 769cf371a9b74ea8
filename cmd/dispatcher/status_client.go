// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
)

// statusClient asks one admin listener.
type statusClient struct {
	url    string // of the document
	format output
	http   *http.Client
}

func newStatusClient(o *statusOptions) (*statusClient, error) {
	u, err := url.Parse(o.admin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--admin must be a URL such as %s, not %q", defaultAdmin, o.admin)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		bundle, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("--ca: %s holds no PEM certificate", o.ca)
		}
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &statusClient{
		url:    u.JoinPath("api/v1/status").String(),
		format: *o.format,
		http:   &http.Client{Timeout: statusTimeout, Transport: &http.Transport{TLSClientConfig: config, Proxy: nil}},
	}, nil
}
