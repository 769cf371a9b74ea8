// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/admission-dispatcher/dispatcher/internal/harness/pki"
	"github.com/admission-dispatcher/dispatcher/internal/harness/process"
)

const configuration = `apiVersion: dispatcher.dev/v1alpha1
kind: DispatcherConfiguration
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
tls: {certFile: serving.crt, keyFile: serving.key, clientCAFile: ca.crt}
sources: [{directory: registry}]
lameDuck: 0s
`

const cluster = `apiVersion: dispatcher.dev/v1alpha1
kind: Cluster
metadata: {name: east}
spec: {authentication: {certificate: {commonNames: [east]}}}
`

// The image is unpacked and runs as a kubelet would have it run: as its user, without
// privileges, in a root that cannot be written and has nothing else.
func TestRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("chroot, mounts and another user need root")
	}
	root := t.TempDir()
	image, ok := images(t)[runtime.GOARCH]
	if !ok {
		t.Skipf("there is no image for %s", runtime.GOARCH)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	unpack(t, image, root)
	configure(t, filepath.Join(root, "etc/dispatcher"))
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	var uid, gid uint32
	if _, err := fmt.Sscanf(config.Config.User, "%d:%d", &uid, &gid); err != nil {
		t.Fatalf("user %q: %v", config.Config.User, err)
	}
	command := append(config.Config.Entrypoint, config.Config.Cmd...)
	cmd := &exec.Cmd{Path: command[0], Args: command, Dir: config.Config.WorkingDir, Env: append([]string{}, config.Config.Env...)}
	var denied error
	p, err := process.StartBy(cmd, nil, func() error {
		cmd.SysProcAttr.Chroot = root
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
		if denied = readOnly(root); denied != nil {
			return denied
		}
		return cmd.Start()
	})
	if denied != nil {
		t.Skipf("mounts are not allowed here: %v", denied)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	_, admin, err := p.Serving()
	if err != nil {
		t.Fatal(err)
	}
	checkProcess(t, cmd.Process.Pid, uid)
	response, err := http.Get("http://" + admin + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("readyz: %s", response.Status)
	}
	p.Signal(syscall.SIGTERM)
	<-p.Exited()
	if !cmd.ProcessState.Success() {
		t.Errorf("it ended with %v:\n%s", cmd.ProcessState, p.Tail())
	}
}

// TestRunMirror: what runs as a sidecar is in the image, and starts in it.
func TestRunMirror(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("chroot and another user need root")
	}
	image, ok := images(t)[runtime.GOARCH]
	if !ok {
		t.Skipf("there is no image for %s", runtime.GOARCH)
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	unpack(t, image, root)
	configure(t, filepath.Join(root, "etc/dispatcher"))
	cmd := &exec.Cmd{Path: "/dispatcher-kube", Dir: "/", Env: []string{}, Args: []string{
		"/dispatcher-kube", "sync", "--config", "/etc/dispatcher/dispatcher.yaml", "--directory", "/mirror", "--namespace", "registry"}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	// It runs in no pod, and says so: it has read its flags and its configuration.
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "error: ") || !strings.Contains(string(out), "KUBERNETES_") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// readOnly makes a directory a mount that cannot be written, for this thread and what it
// starts.
func readOnly(dir string) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNS | syscall.CLONE_FS); err != nil {
		return err
	}
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Mount(dir, dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|syscall.MS_NOSUID|syscall.MS_NODEV, "")
}

// checkProcess looks at what the kernel says of the process.
func checkProcess(t *testing.T, pid int, uid uint32) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", uid), "\nCapEff:\t0000000000000000\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("it runs with other rights than %q:\n%s", want, status)
		}
	}
	mounts, err := os.ReadFile(proc + "mounts")
	if err != nil {
		t.Fatal(err)
	}
	// In a chroot, /proc/PID/mounts has what is below it: its root alone.
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[1] != "/" || !strings.HasPrefix(fields[3], "ro") {
			t.Errorf("it can write to %s", line)
		}
	}
	if len(mounts) == 0 {
		t.Error("its root is no mount")
	}
}

// unpack writes the files of an image as a container runtime does.
func unpack(t *testing.T, image v1.Image, into string) {
	t.Helper()
	contents(t, image, func(h *tar.Header, r io.Reader) {
		path := filepath.Join(into, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.Mkdir(path, os.FileMode(h.Mode)); err != nil {
				t.Fatal(err)
			}
			return
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	})
}

// configure writes what volumes would bring.
func configure(t *testing.T, dir string) {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	serving, err := authority.Issue(pki.OnLoopback("dispatcher"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "registry"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"dispatcher.yaml":       configuration,
		"registry/cluster.yaml": cluster,
		"ca.crt":                string(authority.PEM),
		"serving.crt":           string(serving.Certificate),
		"serving.key":           string(serving.Key),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
