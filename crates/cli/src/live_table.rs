//! The screen of `headcount watch`: a table that is drawn anew, and the keys that change it.

use headcount_report::rates::{Growth, Order, Rates};
use headcount_report::{thousands, visible};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use crate::args::LiveUnit;

/// What the user has made of the screen.
#[derive(Debug)]
pub struct Screen {
    /// Whose table it is.
    title: String,
    pub by: LiveUnit,
    order: Order,
    /// Only rows with this text in them.
    search: String,
    /// Is that text being typed?
    is_typing: bool,
    pub is_paused: bool,
    /// How many rows are above the screen.
    scrolled: usize,
}

/// What a key asks the rest of us for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    /// Other rows.
    Reload,
    Leave,
    /// What Ctrl-C means where nobody reads keys.
    Interrupt,
}

/// How wide the columns with numbers are.
const NUMBERS: [u16; 3] = [15, 6, 19];

/// Below this width there is no room to say where a function is.
const WITH_PLACES: u16 = 100;

impl Screen {
    pub fn new(title: String, by: LiveUnit) -> Self {
        Self {
            title,
            by,
            order: Order::default(),
            search: String::new(),
            is_typing: false,
            is_paused: false,
            scrolled: 0,
        }
    }

    /// The user pressed a key.
    pub fn pressed(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Wish::Interrupt;
        }
        if self.is_typing {
            self.typed(key.code);
            return Wish::Nothing;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Leave,
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.search.clear();
            }
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.order = next(self.order),
            KeyCode::Char('f') => return self.show(LiveUnit::Function),
            KeyCode::Char('l') => return self.show(LiveUnit::Line),
            KeyCode::Down => self.scrolled += 1,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += 20,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(20),
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        Wish::Nothing
    }

    fn typed(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.search.clear();
            }
            KeyCode::Backspace => drop(self.search.pop()),
            KeyCode::Char(typed) => self.search.push(typed),
            _ => {}
        }
        self.scrolled = 0;
    }

    fn show(&mut self, by: LiveUnit) -> Wish {
        self.by = by;
        self.scrolled = 0;
        Wish::Reload
    }

    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>, rates: &Rates) {
        let mut rates = rates.clone();
        rates.keep(&self.search);
        rates.sort(self.order);
        let rows = [
            Constraint::Length(1),
            Constraint::Min(2),
            Constraint::Length(1),
        ];
        let [above, middle, below] = Layout::vertical(rows).areas(frame.area());
        frame.render_widget(Paragraph::new(self.heading(&rates)), above);
        let room = usize::from(middle.height.saturating_sub(1));
        self.scrolled = self.scrolled.min(rates.rows.len().saturating_sub(room));
        frame.render_widget(self.table(&rates, middle, room), middle);
        let style = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Paragraph::new(self.hint()).style(style), below);
    }

    fn heading(&self, rates: &Rates) -> Line<'static> {
        let title = visible(&self.title);
        if rates.executed == 0 {
            return Line::from(format!("{title}: reading counts…"));
        }
        let executed = thousands(rates.executed);
        let rate = match rates.per_second(rates.grown) {
            Some(rate) => format!(", {} per second", thousands(rate)),
            None => String::new(),
        };
        let paused = if self.is_paused { "  [paused]" } else { "" };
        let text = format!("{title}: {executed} instructions{rate}{paused}");
        Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
    }

    fn hint(&self) -> String {
        match (self.is_typing, self.search.as_str()) {
            (true, text) => format!("/{}▏ Enter keeps it, Esc shows all", visible(text)),
            (false, "") => {
                "q leave  s sort  / search  f functions  l lines  space pause".to_owned()
            }
            (false, text) => format!("with “{}”  / Esc shows all  q leave  s sort", visible(text)),
        }
    }

    fn table(&self, rates: &Rates, area: Rect, room: usize) -> Table<'static> {
        let has_places = area.width >= WITH_PLACES && self.by == LiveUnit::Function;
        let numbers: u16 = NUMBERS.iter().sum::<u16>() + NUMBERS.len() as u16;
        let names = area.width.saturating_sub(numbers);
        let widths = match has_places {
            true => vec![names - names / 3 - 1, names / 3],
            false => vec![names],
        };
        let shown = rates.rows.iter().skip(self.scrolled).take(room);
        let rows = shown.map(|it| row(rates, it, &widths));
        let widths = NUMBERS.iter().chain(&widths);
        let widths: Vec<Constraint> = widths.map(|it| Constraint::Length(*it)).collect();
        Table::new(rows, widths).header(self.header(has_places))
    }

    fn header(&self, has_places: bool) -> Row<'static> {
        let mark = |order: Order, text: &str| match self.order == order {
            true => format!("{text}▾"),
            false => text.to_owned(),
        };
        let name = match self.by {
            LiveUnit::Function => "function",
            LiveUnit::Line => "line",
        };
        let mut cells = vec![
            number(mark(Order::Rate, "per second"), 0),
            number("share".to_owned(), 1),
            number(mark(Order::Executed, "executed"), 2),
            Cell::from(mark(Order::Name, name)),
        ];
        if has_places {
            cells.push(Cell::from("source"));
        }
        Row::new(cells).style(Style::new().add_modifier(Modifier::UNDERLINED))
    }
}

fn next(order: Order) -> Order {
    match order {
        Order::Rate => Order::Executed,
        Order::Executed => Order::Name,
        Order::Name => Order::Rate,
    }
}

fn row(rates: &Rates, growth: &Growth, widths: &[u16]) -> Row<'static> {
    let rate = match rates.per_second(growth.grown) {
        Some(rate) => thousands(rate),
        None => "-".to_owned(),
    };
    let names = [&growth.row.name, &growth.row.place];
    let names = names.into_iter().zip(widths);
    let names = names.map(|(name, width)| Cell::from(shortened(&visible(name), (*width).into())));
    let mut cells = vec![
        number(rate, 0),
        number(format!("{:.1}%", rates.share(growth.grown)), 1),
        number(thousands(growth.row.executed), 2),
    ];
    cells.extend(names);
    Row::new(cells)
}

fn number(text: String, column: usize) -> Cell<'static> {
    let width = usize::from(NUMBERS[column]);
    Cell::from(format!("{text:>width$}"))
}

/// A text in so many columns: what is too long loses its middle.
fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width || width < 3 {
        return text.chars().take(width).collect();
    }
    let end = (width - 1) / 2;
    let begin = width - 1 - end;
    let first = text.chars().take(begin);
    let last = text.chars().skip(length - end);
    first.chain(['…']).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headcount_report::rates::{Executed, Reading};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn rates() -> Rates {
        let reading = |at: u64, rows: &[(&str, u64)]| Reading {
            at,
            executed: rows.iter().map(|it| it.1).sum(),
            rows: rows
                .iter()
                .map(|(name, executed)| Executed {
                    name: (*name).to_owned(),
                    place: "src/main.c:120".to_owned(),
                    executed: *executed,
                })
                .collect(),
        };
        let before = reading(0, &[("parse", 1_000), ("evil\u{1b}[2J", 5)]);
        let long = "std::collections::hash::map::HashMap<K,V,S>::insert_with_a_long_name";
        let now = [("parse", 901_000), ("evil\u{1b}[2J", 5), (long, 100_000)];
        reading(1_000_000_000, &now).since(Some(&before))
    }

    fn drawn(screen: &mut Screen, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 7)).unwrap();
        terminal.draw(|it| screen.draw(it, &rates())).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content.chunks(width.into());
        let text = |row: &[ratatui::buffer::Cell]| row.iter().map(|it| it.symbol()).collect();
        rows.map(text)
            .map(|it: String| it.trim_end().to_owned())
            .collect()
    }

    fn screen() -> Screen {
        Screen::new("./server (1234)".to_owned(), LiveUnit::Function)
    }

    fn press(screen: &mut Screen, keys: &str) -> Wish {
        let presses = keys.chars().map(|it| match it {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            typed => KeyCode::Char(typed),
        });
        let mut wish = Wish::Nothing;
        for code in presses {
            wish = screen.pressed(KeyEvent::new(code, KeyModifiers::NONE));
        }
        wish
    }

    #[test]
    fn a_table_fits_80_columns() {
        let expected = [
            "./server (1234): 1,001,005 instructions, 1,000,000 per second",
            "    per second▾  share            executed function",
            "        900,000  90.0%             901,000 parse",
            "        100,000  10.0%             100,000 std::collections::…t_with_a_long_name",
            "              0   0.0%                   5 evil\\x1b[2J",
            "",
            "q leave  s sort  / search  f functions  l lines  space pause",
        ];
        assert_eq!(drawn(&mut screen(), 80), expected);
    }

    #[test]
    fn a_wide_table_says_where_functions_are() {
        let drawn = drawn(&mut screen(), 200);
        assert!(drawn[2].ends_with("src/main.c:120"), "{drawn:#?}");
        assert!(drawn[3].contains("insert_with_a_long_name"), "{drawn:#?}");
    }

    #[test]
    fn what_is_searched_for_is_all_there_is() {
        let mut screen = screen();
        press(&mut screen, "/PARS");
        assert!(drawn(&mut screen, 80)[6].starts_with("/PARS"));
        press(&mut screen, "\n");
        let rows = drawn(&mut screen, 80);
        assert!(
            rows[2].ends_with(" parse") && rows[3].is_empty(),
            "{rows:#?}"
        );
        press(&mut screen, "/\u{1b}");
        assert!(drawn(&mut screen, 80)[4].contains("evil"));
    }

    #[test]
    fn keys_sort_pause_and_leave() {
        let mut screen = screen();
        press(&mut screen, "s");
        assert!(drawn(&mut screen, 80)[1].contains("executed▾"));
        press(&mut screen, "s");
        assert!(drawn(&mut screen, 80)[2].contains("evil"));
        press(&mut screen, " ");
        assert!(drawn(&mut screen, 80)[0].ends_with("[paused]"));
        assert_eq!(press(&mut screen, "l"), Wish::Reload);
        assert_eq!(press(&mut screen, "q"), Wish::Leave);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.pressed(interrupt), Wish::Interrupt);
    }

    #[test]
    fn no_size_makes_it_panic() {
        for width in 0..60 {
            let mut terminal = Terminal::new(TestBackend::new(width, width / 6)).unwrap();
            let mut screen = screen();
            screen.scrolled = 1000;
            terminal.draw(|it| screen.draw(it, &rates())).unwrap();
        }
    }
}
