// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
)

// errNoNginx is why figures with nginx as peer are not measured.
var errNoNginx = errors.New("nginx is missing: apt-get install nginx-light")

func nginxVersion(ctx context.Context) string {
	_, version, found := strings.Cut(output(ctx, "nginx", "-v"), "nginx version: ")
	if !found {
		return "no nginx"
	}
	return version
}

// startNginx starts a proxy to the webhooks.
func (l *lab) startNginx(on cores, webhooks string) (program, string, error) {
	if _, err := exec.LookPath("nginx"); err != nil {
		return program{}, "", errNoNginx
	}
	address, err := unusedAddress()
	if err != nil {
		return program{}, "", err
	}
	if err := l.write("nginx.conf", fmt.Appendf(nil, nginxConfiguration, l.dir, address, webhooks)); err != nil {
		return program{}, "", err
	}
	p, err := l.start(on, nil, "nginx", "-p", l.dir, "-e", "stderr", "-c", l.path("nginx.conf"))
	return p, address, err
}

// unusedAddress is one that nobody listens at, as nginx wants to be told.
func unusedAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// nginxConfiguration makes the most of nginx: one worker on the one core (without a
// master, whose only job would be to start it), connections that are kept on both
// sides, and bodies that stay in memory.
const nginxConfiguration = `daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
  access_log off;
  client_body_temp_path %[1]s/nginx-body;
  proxy_temp_path %[1]s/nginx-proxy;
  fastcgi_temp_path %[1]s/nginx-fastcgi;
  uwsgi_temp_path %[1]s/nginx-uwsgi;
  scgi_temp_path %[1]s/nginx-scgi;
  client_max_body_size 16m;
  client_body_buffer_size 64k;
  keepalive_timeout 300s;
  keepalive_requests 1000000000;
  upstream webhook {
    server %[3]s;
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
  }
  server {
    listen %[2]s ssl;
    ssl_certificate serving.crt;
    ssl_certificate_key serving.key;
    ssl_client_certificate ca.crt;
    ssl_verify_client on;
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {
      proxy_pass https://webhook;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_ssl_protocols TLSv1.2 TLSv1.3;
      proxy_ssl_trusted_certificate ca.crt;
      proxy_ssl_verify on;
      proxy_ssl_name webhook;
    }
  }
}
`
