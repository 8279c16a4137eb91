//! Chromium without a window, told what to do through two pipes (the DevTools protocol: messages
//! of JSON that end in a zero byte).

use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    last_id: u64,
    session: String,
    /// What the page complained of.
    pub complaints: Vec<String>,
    _folder: TempDir,
}

/// What is emulated.
pub struct Screen {
    pub width: u32,
    pub dark: bool,
}

impl Browser {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (into, out) = (folder.path().join("into"), folder.path().join("out"));
        let made = Command::new("mkfifo").args([&into, &out]).status().unwrap();
        assert!(made.success());
        // The shell gives it the pipes under the numbers that it wants. A browser that may run as
        // root wants no sandbox, and the pages are ours.
        let script = "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
                      --hide-scrollbars --no-first-run --disable-background-networking \
                      --remote-debugging-pipe --user-data-dir=\"$1/data\" \
                      about:blank 3<\"$1/into\" 4>\"$1/out\"";
        let child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut browser = Self {
            to: File::options().write(true).open(&into).unwrap(),
            from: BufReader::new(File::open(&out).unwrap()),
            child,
            last_id: 0,
            session: String::new(),
            complaints: Vec::new(),
            _folder: folder,
        };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.ask("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for area in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.ask(area, json!({}));
        }
        browser
    }

    /// One question, one answer. What happens meanwhile is looked at for complaints.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(b"\0").unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser went away");
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.listen(&answer);
        }
    }

    fn listen(&mut self, event: &Value) {
        let method = event["method"].as_str().unwrap_or("");
        let is_complaint = [
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
        ];
        if is_complaint.contains(&method) {
            self.complaints.push(event["params"].to_string());
        }
    }

    /// Opens a page at a place in it, and waits until it is all there.
    pub fn open(&mut self, file: &Path, hash: &str, screen: &Screen) {
        let scheme = if screen.dark { "dark" } else { "light" };
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": screen.width, "height": 900, "deviceScaleFactor": 1, "mobile": false }),
        );
        self.ask(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        );
        // The same file at another place would not be loaded again.
        self.ask("Page.navigate", json!({ "url": "about:blank" }));
        self.wait_for("location.href === 'about:blank'");
        let path = file
            .to_str()
            .unwrap()
            .replace('%', "%25")
            .replace('#', "%23");
        self.ask(
            "Page.navigate",
            json!({ "url": format!("file://{path}{hash}") }),
        );
        self.wait_for("document.documentElement?.dataset.ready === 'yes'");
    }

    /// What an expression is, when it is known.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression,
            "awaitPromise": true,
            "returnByValue": true,
        });
        let answer = self.ask("Runtime.evaluate", params);
        let trouble = &answer["exceptionDetails"];
        assert!(trouble.is_null(), "{expression}: {trouble}");
        answer["result"]["value"].clone()
    }

    pub fn text(&mut self, expression: &str) -> String {
        let value = self.value(expression);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{expression}: {value}"))
            .to_owned()
    }

    /// Waits until something is so.
    pub fn wait_for(&mut self, condition: &str) {
        for _ in 0..1000 {
            let params = json!({ "expression": condition, "returnByValue": true });
            let answer = self.ask("Runtime.evaluate", params);
            if answer["result"]["value"] == true {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("never so: {condition}");
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { key };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let params = json!({ "type": kind, "key": key, "text": text });
            self.ask("Input.dispatchKeyEvent", params);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It need not answer.
        let message = json!({ "id": u32::MAX, "method": "Browser.close" });
        let _ = self.to.write_all(format!("{message}\0").as_bytes());
        for _ in 0..100 {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
